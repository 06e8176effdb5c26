/** Tests `refit upgrade` for k0s, and the choice between several dialects. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { NAMESPACE, STATUS, UpgradeCluster } from '../../test/support/upgrade-cluster.ts';
import { type Plan, plans } from '../api/autopilot/plan.ts';
import { updateConfigs } from '../api/autopilot/update-config.ts';
import { nodeRollouts } from '../api/kinds.ts';
import type { NodeRolloutRun } from '../api/refit/node-rollout.ts';
import type { UpgradeFlags } from '../cli/contract/upgrade-way.ts';
import { ROLLS_BACK_ANNOTATION } from '../engine/model/earlier-versions.ts';
import { apiVersionOf } from '../kube/resources.ts';
import { ifFound } from '../kube/status-error.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.4+k0s.0';
const K3S = 'v1.36.3+k3s1';
const NEXT_K3S = 'v1.36.4+k3s1';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
let cluster: UpgradeCluster;

beforeAll(async () => {
  cluster = await UpgradeCluster.start();
});
beforeEach(async () => await cluster.clear());
afterAll(async () => await cluster[Symbol.asyncDispose]());

const present = async (): Promise<Plan | undefined> =>
  await ifFound(cluster.client.get(plans, 'autopilot'));

function publish(version: string, list?: string): void {
  cluster.files.set(`/${version}/k0s-${version}-amd64`, `k0s ${version}`);
  if (list !== undefined) cluster.files.set(`/${version}/sha256sums.txt`, list);
}

test('the first Plan selects all nodes, with the digest of the published list', async () => {
  await cluster.putController('c1', OLD);
  await cluster.putNode('w1', OLD);
  publish(NEW, `${'ab'.repeat(32)} *k0s-${NEW}-amd64\n${'cd'.repeat(32)}  k0s-${NEW}-arm64\n`);
  const { said, error } = await cluster.upgrading(NEW, { from: `${cluster.place}/` });
  expect(error).toBe('');
  expect(said).toContain(
    `sha256 ${'ab'.repeat(32)} from the list ${cluster.place}/${NEW}/sha256sums.txt`,
  );
  expect(said).toContain('It selects 1 controller and 1 worker, and upgrades one at a time.');
  expect((await present())?.spec.commands).toEqual([
    {
      k0supdate: {
        version: NEW,
        platforms: {
          'linux-amd64': {
            url: `${cluster.place}/${NEW}/k0s-${NEW}-amd64`,
            sha256: 'ab'.repeat(32),
          },
        },
        targets: {
          controllers: { discovery: { selector: {} }, limits: { concurrent: 1 } },
          workers: { discovery: { selector: {} }, limits: { concurrent: 1 } },
        },
      },
    },
  ]);
});

test('the digest is that of the file if there is no list, and plain http is told as such', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  const { said } = await cluster.upgrading(NEW, { from: cluster.place });
  expect(said).toContain(`sha256 ${sha256(`k0s ${NEW}`)} from the file itself, because`);
  expect(said).toContain('Everybody on the network path of plain http');
});

test('upper-case digests of a list count, too', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW, `${'AB'.repeat(32)}  k0s-${NEW}-amd64\n`);
  expect((await cluster.upgrading(NEW, { from: cluster.place })).said).toContain(
    `sha256 ${'ab'.repeat(32)} from`,
  );
});

/** Returns the beginning of an ELF file for this machine. */
const elf = (machine: number): string =>
  `\x7fELF${'\0'.repeat(14)}${String.fromCharCode(machine)}\0`;

test.each<[string, string, string | undefined, string]>([
  ['whose list lacks it', 'k0s', `${'ab'.repeat(32)}  k0s-${NEW}-arm64\n`, 'has no sha256 of k0s-'],
  ['whose line in the list has no digest', 'k0s', `none  k0s-${NEW}-amd64\n`, 'has no sha256 of'],
  ['that is the page of a login', '<html>login</html>', undefined, 'sent HTML instead of the file'],
  ['that is empty', '', undefined, 'the file is empty'],
  ['for another processor', elf(183), undefined, 'the file is for another processor than amd64'],
])('a file %s is refused, and nothing is written', async (_title, body, list, message) => {
  await cluster.putNode('w1', OLD);
  publish(NEW, list);
  cluster.files.set(`/${NEW}/k0s-${NEW}-amd64`, body);
  expect((await cluster.upgrading(NEW, { from: cluster.place })).error).toContain(message);
  expect(await present()).toBeUndefined();
});

test('a file for the right processor is accepted', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  cluster.files.set(`/${NEW}/k0s-${NEW}-amd64`, elf(62));
  expect((await cluster.upgrading(NEW, { from: cluster.place })).error).toBe('');
});

test('a server that fails to give the list is not a server without a list', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  cluster.broken.add(`/${NEW}/sha256sums.txt`);
  expect((await cluster.upgrading(NEW, { from: cluster.place })).error).toContain('answered 503');
  expect(await present()).toBeUndefined();
});

test.each<[string, string]>([
  ['{version}', 'has placeholders, but not {version}'],
  ['{arch}', 'has placeholders, but not {arch}'],
])('an address without %s is refused if it needs it', async (missing, message) => {
  await cluster.putNode('w1', OLD);
  await cluster.putNode('w2', OLD, { 'kubernetes.io/arch': 'arm64' });
  const from = `${cluster.place}/{version}/{arch}/{os}/k0s`.replace(missing, 'x');
  expect((await cluster.upgrading(NEW, { from })).error).toContain(message);
});

test('an address with a password is refused, and the password is not shown', async () => {
  await cluster.putNode('w1', OLD);
  const { error } = await cluster.upgrading(NEW, { from: 'https://user:secret@example.com' });
  expect(error).toContain('must have no user and no password');
  expect(error).not.toContain('secret');
});

test('a Plan after one whose address has an encoded plus sign has such an address, too', async () => {
  await cluster.putNode('w1', OLD);
  const path = (version: string) => `/${version.replace('+', '%2B')}/k0s`;
  cluster.files.set(path(NEW), 'k0s');
  await putPlan('Completed', {}, `${cluster.place}${path(OLD)}`);
  const { error } = await cluster.upgrading(NEW);
  expect(error).toBe('');
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.platforms['linux-amd64']?.url).toBe(`${cluster.place}${path(NEW)}`);
});

test('a last Plan whose address names no version does not send the download elsewhere', async () => {
  await cluster.putNode('w1', OLD);
  await putPlan('Completed', {}, `${cluster.place}/k0s`);
  const { error } = await cluster.upgrading(NEW);
  expect(error).toContain('does not name its version v1.36.3+k0s.0');
  expect(error).toContain('say it with --from');
});

test('labels and annotations of the author stay on the Plan, and those of Refit go', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  await putPlan('Completed', { 'example.com/team': 'shop', 'upgrade.refit.dev/pause': 'true' });
  expect((await cluster.upgrading(NEW)).error).toBe('');
  expect((await present())?.metadata.annotations).toEqual({ 'example.com/team': 'shop' });
});

test('an UpdateConfig that may replace the Plan is named', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  const upgradeStrategy = { type: 'cron', cron: '0 0 * * *' } as const;
  const apiVersion = 'autopilot.k0sproject.io/v1beta2';
  const config = {
    apiVersion,
    kind: 'UpdateConfig',
    metadata: { name: 'stable' },
    spec: { upgradeStrategy },
  };
  await cluster.client.create(updateConfigs, config);
  const { said } = await cluster.upgrading(NEW, { from: cluster.place, dryRun: 'client' });
  await cluster.client.delete(updateConfigs, 'stable');
  expect(said).toContain('UpdateConfig stable follows a channel');
});

test('a controller that is a Node, too, and a Node with Windows are no workers of the Plan', async () => {
  await cluster.putController('c1', OLD);
  await cluster.putNode('c1', OLD);
  await cluster.putNode('w1', OLD);
  await cluster.putNode('win', OLD, { 'kubernetes.io/os': 'windows' });
  publish(NEW);
  await cluster.upgrading(NEW, { from: cluster.place });
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.targets.workers?.discovery).toEqual({ static: { nodes: ['w1'] } });
});

const TYPE_OF_PLAN = { apiVersion: 'autopilot.k0sproject.io/v1beta2', kind: 'Plan' };

async function putPlan(
  state: string | undefined,
  annotations = {},
  url = `${cluster.place}/${OLD}/k0s-${OLD}-amd64`,
): Promise<Plan> {
  const k0supdate = {
    version: OLD,
    platforms: { 'linux-amd64': { url } },
    targets: { workers: { discovery: { static: { nodes: ['w1'] } }, limits: { concurrent: 3 } } },
  };
  const plan = await cluster.client.create(plans, {
    ...TYPE_OF_PLAN,
    metadata: { name: 'autopilot', annotations },
    spec: { id: 'before', timestamp: 'now', commands: [{ k0supdate }] },
  });
  if (state === undefined) return plan;
  const status = { state, commands: [{ id: 0, state, k0supdate: {} }] };
  return await cluster.client.patch(plans, 'autopilot', { status }, STATUS);
}

test('an ended Plan is replaced, and the new one has its targets and its addresses', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  const old = await putPlan('Completed');
  const { said, error } = await cluster.upgrading(NEW);
  expect(error).toBe('');
  expect(said).toContain('Plan autopilot, which has ended, is replaced');
  expect(said).toContain(`kubectl --kubeconfig ${cluster.kubeconfig} replace --force -f plan.yaml`);
  const made = await present();
  expect(made?.metadata.uid).not.toBe(old.metadata.uid);
  const [command] = made?.spec.commands ?? [];
  expect(command?.k0supdate?.platforms['linux-amd64']?.url).toBe(
    `${cluster.place}/${NEW}/k0s-${NEW}-amd64`,
  );
  expect(command?.k0supdate?.targets.workers?.limits?.concurrent).toBe(3);
});

test('the targets of a Plan that rolled back are not those of an upgrade', async () => {
  await cluster.putNode('w1', OLD);
  await cluster.putNode('w2', OLD);
  publish(NEW);
  await putPlan('Completed', { [ROLLS_BACK_ANNOTATION]: 'uid/run' });
  // Its addresses still say where the files are.
  const { said, error } = await cluster.upgrading(NEW);
  expect(error).toBe('');
  expect(said).toContain(`It goes from ${OLD} (2 nodes) to ${NEW}.`);
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.targets.workers).toEqual({
    discovery: { selector: {} },
    limits: { concurrent: 3 },
  });
  expect(said).toContain('upgrades 3 workers at a time');
});

/** A run in the history of the Plan, and how it ended. */
const runTo = (version: string, day: string, phase: string, failed: number): NodeRolloutRun => ({
  id: `run-${day}`,
  version,
  started: `2026-11-${day}T08:00:00Z`,
  phase,
  counts: { total: 1, pending: 0, inProgress: 0, done: 1 - failed, failed, skipped: 0 },
  failures: failed === 0 ? [] : [{ node: 'w1', message: 'crash loop' }],
});

async function putHistory(...history: readonly NodeRolloutRun[]): Promise<void> {
  const { client } = cluster;
  const plan = { apiVersion: TYPE_OF_PLAN.apiVersion, kind: 'Plan', name: 'autopilot', uid: 'u' };
  const name = { name: 'autopilot', namespace: NAMESPACE };
  await client.create(nodeRollouts, {
    apiVersion: apiVersionOf(nodeRollouts),
    kind: nodeRollouts.kind,
    metadata: { ...name, labels: { 'upgrade.refit.dev/dialect': 'autopilot' } },
    spec: { plan },
  });
  await client.patch(
    nodeRollouts,
    'autopilot',
    { status: { history } },
    {
      ...STATUS,
      namespace: NAMESPACE,
    },
  );
}

test('a version with which the last run failed is told before it is installed again', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  await putHistory(runTo(OLD, '21', 'done', 0), runTo(NEW, '20', 'failed', 1));
  const { said, error } = await cluster.upgrading(NEW, { from: cluster.place });
  expect(error).toBe('');
  expect(said).toContain(
    `Plan autopilot has failed with ${NEW} before, in run run-20, which started at 2026-11-20T08:00:00Z: w1 failed: crash loop. Find the cause first, or take another version.`,
  );
});

test.each<[string, readonly NodeRolloutRun[]]>([
  ['that a later run installed', [runTo(NEW, '21', 'done', 0), runTo(NEW, '20', 'failed', 1)]],
  ['whose run somebody aborted', [runTo(NEW, '20', 'failed', 0)]],
])('a version %s is not told as failed', async (_title, history) => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  await putHistory(...history);
  const { said, error } = await cluster.upgrading(NEW, { from: cluster.place });
  expect(error).toBe('');
  expect(said).not.toContain('before, in run');
});

test('a Plan that has not ended is not replaced, and the error names what ends it', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  const old = await putPlan('SchedulableWait');
  const { error } = await cluster.upgrading(NEW, { from: cluster.place });
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
  ['an address that is no address', NEW, { from: 'here' }, '--from must be an address'],
  ['a name of no plan', NEW, { plan: 'plan/typo' }, 'no plan plan/typo can get another version'],
])('%s is refused with what helps', async (_title, version, flags, error) => {
  await cluster.putNode('w1', OLD);
  publish('v1.36.1+k0s.0');
  const outcome = await cluster.upgrading(version, { from: cluster.place, ...flags });
  expect(outcome.error).toContain(error);
  expect(await present()).toBeUndefined();
});

const indexOf = (version: string, more = ''): string =>
  `version: ${version}\ndownloadURLs:\n  - {os: linux, arch: amd64, k0s: "${cluster.place}/k0s", k0sSha256: ${'ab'.repeat(32)}}\n${more}`;

test('the index of a channel has the files of its version', async () => {
  await cluster.putNode('w1', OLD);
  cluster.files.set('/stable/index.yaml', indexOf(NEW));
  const { said, error } = await cluster.upgrading(NEW, {
    from: `${cluster.place}/stable/index.yaml`,
  });
  expect([error, said]).toEqual(['', expect.stringContaining('from the channel')]);
  const [command] = (await present())?.spec.commands ?? [];
  expect(command?.k0supdate?.platforms).toEqual({
    'linux-amd64': { url: `${cluster.place}/k0s`, sha256: 'ab'.repeat(32) },
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
  await cluster.putNode('w1', OLD);
  cluster.files.set('/stable/index.yaml', indexOf(version));
  const { error } = await cluster.upgrading(NEW, { from: `${cluster.place}/stable/index.yaml` });
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
  await cluster.putNode('w1', OLD);
  publish(NEW);
  const { said, error } = await cluster.upgrading(NEW, { from: cluster.place, ...flags });
  expect([error, said]).toEqual(['', expect.stringContaining(text)]);
  expect(await present()).toBeUndefined();
});

test('without a terminal and without --yes nothing is written', async () => {
  await cluster.putNode('w1', OLD);
  publish(NEW);
  expect((await cluster.upgrading(NEW, { from: cluster.place, yes: false })).error).toContain(
    'pass --yes',
  );
  expect(await present()).toBeUndefined();
});

test('several things that could get the version are a choice, and each is named with its flags', async () => {
  await cluster.putNode('w1', OLD);
  await cluster.putNode('a1', K3S);
  expect((await cluster.upgrading(NEXT_K3S)).error).toContain(
    `refit upgrade ${NEXT_K3S} --dialect autopilot`,
  );
});

test('a cluster without anything to upgrade says what was looked for', async () => {
  await cluster.putNode('w1', 'v1.36.3');
  expect((await cluster.upgrading('v1.36.4')).error).toContain(
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
  const outcome = await cluster.upgrading(version, { kubeconfig: '/none', ...flags });
  expect(outcome.error).toContain(message);
});
