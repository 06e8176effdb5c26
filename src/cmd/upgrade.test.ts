/** Tests `refit upgrade` for k0s and for Plans of Rancher, on an API server in memory and with a server of files. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { installDefinitions } from '../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../sandbox/cluster/plane.ts';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { buildControlNode, buildNode } from '../../test/support/builders/nodes.ts';
import { type Plan, plans } from '../api/autopilot/plan.ts';
import type { CattlePlan } from '../api/cattle/plan.ts';
import { cattlePlans } from '../api/kinds.ts';
import type { UpgradeFlags } from '../cli/contract/upgrade-way.ts';
import { plainOutput } from '../cli/output.ts';
import { upgrade } from '../cli/upgrade/upgrade-command.ts';
import { MODULES } from '../dialects/modules.ts';
import { ROLLS_BACK_ANNOTATION } from '../engine/model/earlier-versions.ts';
import type { KubeClient } from '../kube/client.ts';
import { loadClusterConfig } from '../kube/config/kubeconfig.ts';
import { type KubeObject, namespaces, nodes, type Resource } from '../kube/resources.ts';
import { describeProblem, ifFound, ifNew } from '../kube/status-error.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { controlNodes } from '../signal/names.ts';
import { systemClock } from '../util/clock.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.4+k0s.0';
const NAMESPACE = 'system-upgrade';
const things = new AsyncDisposableStack();
/** What the server of files has, by path. */
const files = new Map<string, string>();
let client: KubeClient;
let kubeconfig: string;
let place = '';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-upgrade-'));
  things.defer(async () => await rm(folder, { recursive: true }));
  const plane = await startSandboxPlane(folder);
  things.defer(async () => await plane.stop());
  kubeconfig = await plane.kubeconfig('admin');
  client = things.use(createClient(await loadClusterConfig({ path: kubeconfig })));
  await installDefinitions(client, systemClock);
  await ifNew(client.create(namespaces, { metadata: { name: NAMESPACE } }));
  const server = createServer((request, response) => {
    const body = files.get(request.url ?? '');
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  things.defer(() => void server.close());
  place = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => await things.disposeAsync());

beforeEach(async () => {
  files.clear();
  for (const resource of [plans, nodes, controlNodes] as readonly Resource[])
    for (const { metadata } of (await client.listAll(resource)).items)
      await ifFound(client.delete(resource, metadata.name));
  for (const { metadata } of (await client.listAll(cattlePlans)).items)
    await ifFound(client.delete(cattlePlans, metadata.name, { namespace: NAMESPACE }));
});

const OPTIONS = { type: 'merge', subresource: 'status' } as const;

async function put(resource: Resource, object: KubeObject, status: object): Promise<void> {
  const { uid: _uid, resourceVersion: _version, ...metadata } = object.metadata;
  await client.create(resource, { ...object, metadata });
  await client.patch(resource, metadata.name, { status }, OPTIONS);
}

async function putNode(
  name: string,
  kubeletVersion: string,
  labels = {},
  annotations = {},
): Promise<void> {
  const named = { 'kubernetes.io/hostname': name, ...labels };
  const node = buildNode(name, { labels: named, annotations });
  await put(nodes, node, { nodeInfo: { kubeletVersion } });
}

async function putController(name: string, k0sVersion: string): Promise<void> {
  await put(controlNodes, buildControlNode(name), { k0sVersion });
}

interface Outcome {
  readonly said: string;
  readonly error: string;
}

async function upgrading(version: string, flags: Partial<UpgradeFlags> = {}): Promise<Outcome> {
  let said = '';
  const write = (piece: string): void => {
    said += piece;
  };
  const output = { ...plainOutput, write };
  const abort = new AbortController().signal;
  const parts = { modules: MODULES, clock: systemClock, output, abort, environment: {} };
  const all = { kubeconfig, apiPort: 6443, yes: true, ready: false, ...flags };
  const error = await upgrade(version, all, parts).then(
    () => '',
    (failure: unknown) => describeProblem(failure).line,
  );
  return { said: said.replaceAll(/\s+/g, ' '), error: error.replaceAll(/\s+/g, ' ') };
}

const present = async (): Promise<Plan | undefined> =>
  await ifFound(client.get(plans, 'autopilot'));

function publish(version: string, list?: string): void {
  files.set(`/${version}/k0s-${version}-amd64`, `k0s ${version}`);
  if (list !== undefined) files.set(`/${version}/sha256sums.txt`, list);
}

test('the first Plan selects all nodes, with the digest of the published list', async () => {
  await putController('c1', OLD);
  await putNode('w1', OLD);
  publish(NEW, `${'ab'.repeat(32)} *k0s-${NEW}-amd64\n${'cd'.repeat(32)}  k0s-${NEW}-arm64\n`);
  const { said, error } = await upgrading(NEW, { from: `${place}/` });
  expect(error).toBe('');
  expect(said).toContain(`sha256 ${'ab'.repeat(32)} from the list ${place}/${NEW}/sha256sums.txt`);
  expect(said).toContain('It selects 1 controller and 1 worker, and upgrades one at a time.');
  expect((await present())?.spec.commands).toEqual([
    {
      k0supdate: {
        version: NEW,
        platforms: {
          'linux-amd64': { url: `${place}/${NEW}/k0s-${NEW}-amd64`, sha256: 'ab'.repeat(32) },
        },
        targets: {
          controllers: { discovery: { selector: {} }, limits: { concurrent: 1 } },
          workers: { discovery: { selector: {} }, limits: { concurrent: 1 } },
        },
      },
    },
  ]);
});

test.each([
  ['there is no list', undefined],
  ['the list lacks the file', `${'ab'.repeat(32)}  k0s-${NEW}-arm64\n`],
  ['the line of the file has no digest', `nothing  k0s-${NEW}-amd64\n`],
])('the digest is that of the file if %s', async (_title, list) => {
  await putNode('w1', OLD);
  publish(NEW, list);
  const { said } = await upgrading(NEW, { from: place });
  expect(said).toContain(`sha256 ${sha256(`k0s ${NEW}`)} from the file, because no list has it`);
});

test('a controller that is a Node, too, and a Node with Windows are no workers of the Plan', async () => {
  await putController('c1', OLD);
  await putNode('c1', OLD);
  await putNode('w1', OLD);
  await putNode('win', OLD, { 'kubernetes.io/os': 'windows' });
  publish(NEW);
  await upgrading(NEW, { from: place });
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.targets.workers?.discovery).toEqual({ static: { nodes: ['w1'] } });
});

const TYPE_OF_PLAN = { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan' };

async function putPlan(state: string | undefined, annotations = {}): Promise<Plan> {
  const k0supdate = {
    version: OLD,
    platforms: { 'linux-amd64': { url: `${place}/${OLD}/k0s-${OLD}-amd64` } },
    targets: { workers: { discovery: { static: { nodes: ['w1'] } }, limits: { concurrent: 3 } } },
  };
  const plan = await client.create(plans, {
    ...TYPE_OF_PLAN,
    metadata: { name: 'autopilot', annotations },
    spec: { id: 'before', timestamp: 'now', commands: [{ k0supdate }] },
  });
  if (state === undefined) return plan;
  const status = { state, commands: [{ id: 0, state, k0supdate: {} }] };
  return await client.patch(plans, 'autopilot', { status }, OPTIONS);
}

test('an ended Plan is replaced, and the new one has its targets and its addresses', async () => {
  await putNode('w1', OLD);
  publish(NEW);
  const old = await putPlan('Completed');
  const { said, error } = await upgrading(NEW);
  expect(error).toBe('');
  expect(said).toContain('Plan autopilot, which has ended, is replaced');
  expect(said).toContain('kubectl replace --force -f plan.yaml');
  const made = await present();
  expect(made?.metadata.uid).not.toBe(old.metadata.uid);
  const [command] = made?.spec.commands ?? [];
  expect(command?.k0supdate?.platforms['linux-amd64']?.url).toBe(
    `${place}/${NEW}/k0s-${NEW}-amd64`,
  );
  expect(command?.k0supdate?.targets.workers?.limits?.concurrent).toBe(3);
});

test('the targets of a Plan that rolled back are not those of an upgrade', async () => {
  await putNode('w1', OLD);
  await putNode('w2', OLD);
  publish(NEW);
  await putPlan('Completed', { [ROLLS_BACK_ANNOTATION]: 'uid/run' });
  await upgrading(NEW, { from: place });
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.targets.workers?.discovery).toEqual({ selector: {} });
});

test('a Plan that has not ended is not replaced, and the error names what ends it', async () => {
  await putNode('w1', OLD);
  publish(NEW);
  const old = await putPlan('SchedulableWait');
  const { error } = await upgrading(NEW, { from: place });
  expect(error).toContain('has not ended (follow it with `refit status --watch`, or end it with');
  expect((await present())?.metadata.uid).toBe(old.metadata.uid);
});

test.each<[string, string, Partial<UpgradeFlags>, string]>([
  ['a version without a build', 'v1.36.4', {}, 'write for example refit upgrade v1.36.4+k0s.0'],
  [
    'a version that every node runs',
    OLD,
    {},
    'already run v1.36.3+k0s.0, so nothing is left to do',
  ],
  ['a version that is not published', NEW, {}, 'answered 404 Not Found (check the version, or say'],
  ['an older version', 'v1.36.1+k0s.0', {}, 'use refit rollback'],
  ['an address that is no address', NEW, { from: 'here' }, '--from must be an https address'],
])('%s is refused with what helps', async (_title, version, flags, error) => {
  await putNode('w1', OLD);
  publish('v1.36.1+k0s.0');
  const outcome = await upgrading(version, { from: place, ...flags });
  expect(outcome.error).toContain(error);
  expect(await present()).toBeUndefined();
});

const indexOf = (version: string, more = ''): string =>
  `version: ${version}\ndownloadURLs:\n  - {os: linux, arch: amd64, k0s: "${place}/k0s", k0sSha256: ${'ab'.repeat(32)}}\n${more}`;

test('the index of a channel has the files of its version', async () => {
  await putNode('w1', OLD);
  files.set('/stable/index.yaml', indexOf(NEW));
  const { said, error } = await upgrading(NEW, { from: `${place}/stable/index.yaml` });
  expect([error, said]).toEqual(['', expect.stringContaining('from the channel')]);
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.platforms).toEqual({
    'linux-amd64': { url: `${place}/k0s`, sha256: 'ab'.repeat(32) },
  });
});

test.each<[string, string, string]>([
  ['another version', 'v1.36.9+k0s.0', 'has v1.36.9+k0s.0, and not v1.36.4+k0s.0'],
  [
    'a withdrawn version',
    `${NEW}\nwithdrawn: {${NEW}: it loses data}`,
    'has withdrawn v1.36.4+k0s.0: it loses data',
  ],
])('the index of a channel with %s writes nothing', async (_title, version, message) => {
  await putNode('w1', OLD);
  files.set('/stable/index.yaml', indexOf(version));
  const { error } = await upgrading(NEW, { from: `${place}/stable/index.yaml` });
  expect(error).toContain(message);
  expect(await present()).toBeUndefined();
});

test.each<[string, Partial<UpgradeFlags>, string]>([
  ['-o yaml', { output: 'yaml' }, 'kind: Plan'],
  ['--dry-run=client', { dryRun: 'client' }, 'Nothing was written'],
  [
    '--dry-run=server',
    { dryRun: 'server' },
    'Nothing was written: this was a dry run, which the API server checked',
  ],
])('%s writes nothing', async (_title, flags, text) => {
  await putNode('w1', OLD);
  publish(NEW);
  const { said, error } = await upgrading(NEW, { from: place, ...flags });
  expect([error, said]).toEqual(['', expect.stringContaining(text)]);
  expect(await present()).toBeUndefined();
});

test('without a terminal and without --yes nothing is written', async () => {
  await putNode('w1', OLD);
  publish(NEW);
  expect((await upgrading(NEW, { from: place, yes: false })).error).toContain('pass --yes');
  expect(await present()).toBeUndefined();
});

async function putCattle(name: string, spec: Parameters<typeof buildCattlePlan>[1]): Promise<void> {
  const { metadata, ...plan } = buildCattlePlan(name, spec);
  const { uid: _uid, creationTimestamp: _created, ...rest } = metadata;
  await client.create(cattlePlans, { ...plan, metadata: rest }, { namespace: NAMESPACE });
}

const cattle = async (name: string): Promise<CattlePlan> =>
  await client.get(cattlePlans, name, { namespace: NAMESPACE });

const K3S = 'v1.36.3+k3s1';
const NEXT_K3S = 'v1.36.4+k3s1';
const installer = { upgrade: { image: 'registry.example.com/rancher/k3s-upgrade' } };

test('the version is written into all Plans that install K3s, and into no others', async () => {
  await putNode('w1', K3S);
  await putCattle('servers', { ...installer, version: K3S });
  await putCattle('agents', { ...installer, version: K3S });
  await putCattle('kernel', { version: '6.1' });
  const { said, error } = await upgrading(NEXT_K3S);
  expect(error).toBe('');
  expect(said).toContain(`Plan system-upgrade/servers changes from ${K3S} to ${NEXT_K3S}.`);
  expect(said).toContain('kubectl patch plans.upgrade.cattle.io servers -n system-upgrade');
  const names = ['servers', 'agents', 'kernel'];
  const versions = await Promise.all(names.map(async (name) => (await cattle(name)).spec?.version));
  expect(versions).toEqual([NEXT_K3S, NEXT_K3S, '6.1']);
  expect((await upgrading(NEXT_K3S)).error).toContain('so nothing is left to write');
});

test('a Plan is named with --plan, and the others keep their versions', async () => {
  await putNode('w1', K3S);
  await putCattle('servers', { ...installer, version: K3S });
  await putCattle('agents', { ...installer, version: K3S });
  expect((await upgrading(NEXT_K3S, { plan: 'plan/agents' })).error).toBe('');
  expect((await cattle('agents')).spec?.version).toBe(NEXT_K3S);
  expect((await cattle('servers')).spec?.version).toBe(K3S);
});

test.each<[string, Parameters<typeof buildCattlePlan>[1], string, string]>([
  [
    'a channel',
    { ...installer, version: '', channel: 'https://channels.example.com/stable' },
    NEXT_K3S,
    'follows the channel',
  ],
  [
    'a tag in its image',
    { version: K3S, upgrade: { image: `rancher/k3s-upgrade:v1.36.3-k3s1` } },
    NEXT_K3S,
    'names its version itself',
  ],
  [
    'K3s, and a version without a build',
    { ...installer, version: K3S },
    'v1.36.4',
    'write for example refit upgrade v1.36.4+k3s1',
  ],
])(
  'a Plan with %s is not changed, and the error says why',
  async (_title, spec, version, message) => {
    await putNode('w1', K3S);
    await putCattle('servers', spec);
    expect((await upgrading(version)).error).toContain(message);
    expect((await cattle('servers')).spec?.version).toBe(spec?.version);
  },
);

test('without a Plan for K3s, one for the servers and one for the agents are created', async () => {
  await putNode('s1', K3S, { 'node-role.kubernetes.io/control-plane': 'true' });
  await putNode('a1', K3S);
  const { said, error } = await upgrading(NEXT_K3S);
  expect(error).toBe('');
  expect(said).toContain('Plan system-upgrade/server-plan is created');
  expect((await cattle('server-plan')).spec?.nodeSelector?.matchExpressions?.[0]?.operator).toBe(
    'In',
  );
  const { spec } = await cattle('agent-plan');
  expect([spec?.version, spec?.prepare?.args]).toEqual([NEXT_K3S, ['prepare', 'server-plan']]);
});

test('a blocker of refit ready stops the upgrade, unless it is accepted with a reason', async () => {
  // The kubelet of this version no longer has the flag.
  const next = 'v1.37.0+k3s1';
  const removed = { 'k3s.io/node-args': JSON.stringify(['agent', '--kubelet-arg=containerd=/x']) };
  await putNode('w1', K3S, {}, removed);
  await putCattle('servers', { ...installer, version: K3S });
  const { error } = await upgrading(next, { ready: true });
  expect(error).toContain('to start all the same, pass --accept settings=REASON');
  expect((await cattle('servers')).spec?.version).toBe(K3S);
  const accept = ['settings=the flag goes next week'];
  expect((await upgrading(next, { ready: true, accept })).error).toBe('');
  expect((await cattle('servers')).spec?.version).toBe(next);
});

test('several things that could get the version are a choice, and each is named with its flags', async () => {
  await putNode('w1', OLD);
  await putNode('a1', K3S);
  expect((await upgrading(NEXT_K3S)).error).toContain(
    `refit upgrade ${NEXT_K3S} --plan plan/autopilot`,
  );
});

test('a cluster without anything to upgrade says what was looked for', async () => {
  await putNode('w1', 'v1.36.3');
  expect((await upgrading('v1.36.4')).error).toContain(
    'name its manifest: refit upgrade v1.36.4 -m',
  );
});

test.each<[string, string, Partial<UpgradeFlags>, string]>([
  ['no version', 'next', {}, 'the version must be such as v1.37.2 or v1.37.2+k0s.0, found "next"'],
  [
    'a plan and a Cluster',
    NEW,
    { plan: 'a', cluster: 'b' },
    '--cluster, --plan name different things',
  ],
  ['a namespace alone', NEW, { namespace: 'a' }, 'so it needs --cluster'],
  [
    'an address for a manifest',
    NEW,
    { from: 'https://a', manifest: 'a' },
    '--from says where the files of k0s are',
  ],
  ['-o yaml with a dry run', NEW, { output: 'yaml', dryRun: 'client' }, 'it needs no --dry-run'],
])('%s is refused before anything is read', async (_title, version, flags, message) => {
  const outcome = await upgrading(version, { kubeconfig: '/none', ...flags });
  expect(outcome.error).toContain(message);
});
