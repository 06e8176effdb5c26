/**
 * Shows for the actions about which the page asks first what the server answers before and after the confirmation, and
 * which requests it refuses.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createNode, installDefinitions } from '../../../sandbox/cluster/objects.ts';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildUpgradePolicy } from '../../../test/support/builders/policies.ts';
import { buildSignal } from '../../../test/support/builders/signals.ts';
import { plans } from '../../api/autopilot/plan.ts';
import { nodeRollouts, upgradePolicies } from '../../api/kinds.ts';
import { autopilot } from '../../dialects/autopilot/plan/autopilot-dialect.ts';
import { MODULES } from '../../dialects/modules.ts';
import { placeOf } from '../../engine/contract/node-rollout-place.ts';
import { OPEN_WINDOW_ANNOTATION } from '../../engine/model/controls.ts';
import { DIALECT_LABEL } from '../../engine/report/node-rollout-object.ts';
import type { KubeClient } from '../../kube/client.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { nodes } from '../../kube/resources.ts';
import { createClient } from '../../kube/transport/http-client.ts';
import { ROLLOUT_ANNOTATION } from '../../signal/names.ts';
import { systemClock } from '../../util/clock.ts';
import { actionIn, carryOut } from './actions.ts';
import type { ActionRequest, ActionResult } from './state.ts';

const OLD = 'v1.36.3+k0s.0';
const NEW = 'v1.36.3+k0s.2';
const plan = 'autopilot//autopilot';

let client: KubeClient;
let kubeconfig: string;
let ofReader: string;

/** Carries the request out with the rights of the user of the kubeconfig. */
async function act(request: ActionRequest, of = kubeconfig): Promise<ActionResult> {
  const abort = new AbortController().signal;
  return await carryOut(
    request,
    { kubeconfig: of },
    { modules: MODULES, clock: systemClock, abort },
  );
}

async function read() {
  return await client.get(plans, 'autopilot');
}

/** Starts a server that hands each request to the API server, and refuses to patch Plans as it does without the right. */
async function startReadingServer(target: string) {
  const message =
    'plans.autopilot.k0sproject.io "autopilot" is forbidden: User "bob" cannot patch resource "plans" in API group "autopilot.k0sproject.io" at the cluster scope';
  const refusal = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden' };
  const server = createServer((asked, answer) => {
    const { method, headers, url = '' } = asked;
    if (method === 'PATCH')
      return void answer
        .writeHead(403, { 'content-type': 'application/json' })
        .end(JSON.stringify({ ...refusal, code: 403, message }));
    const sent = ask(new URL(url, target), { method, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(answer);
    });
    sent.on('error', () => answer.destroy());
    return void asked.pipe(sent);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-asked-'));
  const plane = await startSandboxPlane(folder);
  kubeconfig = await plane.kubeconfig('admin');
  const reading = await startReadingServer(plane.url);
  ofReader = join(folder, 'reader.json');
  const text = await readFile(kubeconfig, 'utf8');
  await writeFile(ofReader, text.replaceAll(plane.url, reading.url));
  client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  await installDefinitions(client, systemClock);
  await createNode(client, 'w1', {});
  const blackouts = [{ from: '2000-01-01', to: '2999-12-31' }];
  const { metadata, ...policy } = buildUpgradePolicy('careful', {
    blackouts,
    health: { daemonSets: 'All' },
  });
  await client.create(upgradePolicies, { ...policy, metadata: { name: metadata.name } });
  const k0supdate = buildUpdate({ version: NEW, targets: { workers: listed('w1') } });
  const { metadata: named, ...rest } = buildPlan({ commands: [{ k0supdate }] });
  const made = await client.create(plans, { ...rest, metadata: { name: named.name } });
  const place = placeOf(autopilot, made);
  if (place === undefined) throw new Error('a Plan of k0s has a NodeRollout');
  const { uid = '' } = made.metadata;
  await client.create(
    nodeRollouts,
    {
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'NodeRollout',
      metadata: { ...place, labels: { [DIALECT_LABEL]: 'autopilot' } },
      spec: { plan: { apiVersion: made.apiVersion ?? '', kind: 'Plan', name: 'autopilot', uid } },
    },
    { namespace: place.namespace },
  );
  return async () => {
    client.close();
    reading.stop();
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

test('an opening is only described until it is confirmed, and then it is written', async () => {
  const asked = { action: 'start', plan, for: '90m', reason: 'fix', blackouts: true } as const;
  const dry = await act({ ...asked, isConfirmed: false });
  expect(dry).toMatchObject({ isDone: true });
  expect(dry.lines[0]).toMatch(/^The maintenance window of Plan autopilot \(id1\) is open until /);
  expect(dry.lines.join()).not.toContain('dry run');
  expect((await read()).metadata.annotations?.[OPEN_WINDOW_ANNOTATION]).toBeUndefined();
  expect(await act({ ...asked, isConfirmed: true })).toMatchObject({ isDone: true });
  const written = (await read()).metadata.annotations?.[OPEN_WINDOW_ANNOTATION] ?? '';
  const opening = JSON.parse(written) as { since: string; until: string };
  expect(opening).toMatchObject({ reason: 'fix', blackouts: true });
  expect(Date.parse(opening.until) - Date.parse(opening.since)).toBe(90 * 60_000);
});

test.each(['169h', '0', '-1h', '2 days', 'constructor'])(
  'an opening of %j is refused with one sentence',
  async (length) => {
    expect(await act({ action: 'start', plan, for: length, isConfirmed: true })).toEqual({
      isDone: false,
      lines: [
        'REFIT_USAGE: the window cannot be open for that long (write hours or minutes, such as 2h or 90m, and at most 168h, which is 7 days)',
      ],
    });
  },
);

test('a check is accepted after the confirmation, and an unknown check is refused', async () => {
  const accepted = async () => {
    const { items } = await client.listAll(nodeRollouts, {});
    return items[0]?.spec.accepted?.map(({ check }) => check) ?? [];
  };
  const asked = { action: 'accept', plan, check: 'daemonsets' } as const;
  const said = 'Plan autopilot (id1): the health check daemonsets may fail, by ';
  const dry = await act({ ...asked, isConfirmed: false });
  expect(dry.lines[0]).toContain(said);
  expect(await accepted()).toEqual([]);
  expect((await act({ ...asked, isConfirmed: true })).lines[0]).toContain(said);
  expect(await accepted()).toEqual(['daemonsets']);
  const unknown = await act({ ...asked, check: '__proto__', isConfirmed: true });
  expect(unknown.isDone).toBe(false);
  expect(unknown.lines.join()).toContain('which is no health check of UpgradePolicy careful');
});

test('a retry of left-out nodes is refused with the words of the command if there is none', async () => {
  expect(await act({ action: 'retry-skipped', plan, isConfirmed: false })).toEqual({
    isDone: false,
    lines: ['REFIT_CONTROL: Plan autopilot (id1) has no skipped node (run `refit status`)'],
  });
});

test('an unknown plan is refused, also for a roll-back', async () => {
  const unknown = 'autopilot//nosuch';
  for (const request of [
    { action: 'retry-skipped', plan: unknown, isConfirmed: true },
    { action: 'rollback', plan: unknown, reason: 'bad', isConfirmed: false },
  ] as const) {
    const { isDone, lines } = await act(request);
    expect({ isDone, text: lines.join() }).toEqual({
      isDone: false,
      text: expect.stringContaining('there is no plan autopilot/nosuch') as unknown,
    });
  }
});

test('a user without the right sees the action described, and is told which right is missing', async () => {
  const asked = { action: 'start', plan, for: '2h', blackouts: true } as const;
  expect(await act({ ...asked, isConfirmed: false }, ofReader)).toMatchObject({ isDone: true });
  expect(await act({ ...asked, isConfirmed: true }, ofReader)).toEqual({
    isDone: false,
    lines: ['Refused: the user bob has no right to patch plans.autopilot.k0sproject.io.'],
  });
});

test('a roll-back is carried out only if it still changes what the viewer has seen', async () => {
  const { uid = '' } = (await read()).metadata;
  const back = { action: 'rollback', plan, reason: 'bad release' } as const;
  expect((await act({ ...back, isConfirmed: false })).lines.join()).toContain(
    'the plan still runs: end it first with refit abort',
  );
  await endWith(uid);
  const dry = await act({ ...back, isConfirmed: false });
  expect(dry).toMatchObject({
    isDone: true,
    id: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
  });
  expect(dry.lines.join('\n').replaceAll(/ +/g, ' ')).toContain(`w1 worker ${NEW} ${OLD}`);
  const confirmed = { ...back, isConfirmed: true, typed: 'yes' } as const;
  expect(await act({ ...confirmed, seen: '0'.repeat(64) })).toEqual({
    isDone: false,
    lines: [expect.stringMatching(/^Nothing was written, because the roll-back would now change/)],
  });
  expect((await read()).metadata.uid).toBe(uid);
  const done = await act({ ...confirmed, seen: dry.id ?? '' });
  expect(done.lines.join()).toContain('The Plan that goes back is written.');
  expect((await read()).metadata.uid).not.toBe(uid);
});

/** Ends the Plan, and records the run as a leader would. */
async function endWith(planUid: string): Promise<void> {
  const ofStatus = { type: 'merge', subresource: 'status' } as const;
  const state = 'Completed';
  const lastUpdatedTimestamp = new Date().toISOString();
  const workers = [{ name: 'w1', state: 'SignalCompleted', lastUpdatedTimestamp }];
  const commands = [{ id: 0, state, k0supdate: { workers } }];
  await client.patch(plans, 'autopilot', { status: { state, commands } }, ofStatus);
  const annotations = {
    ...buildSignal({ status: 'Completed' }),
    [ROLLOUT_ANNOTATION]: 'a/created',
  };
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  await client.patch(nodes, 'w1', { metadata: { annotations, labels } }, { type: 'merge' });
  await client.patch(nodes, 'w1', { status: { nodeInfo: { kubeletVersion: NEW } } }, ofStatus);
  const counts = { total: 1, done: 1, failed: 0, inProgress: 0, pending: 0, skipped: 0 };
  const downloads = [NEW, OLD].map((version) => ({
    version,
    platform: 'linux-amd64',
    url: `https://example.com/${version}`,
    sha256: 'ab'.repeat(32),
  }));
  const time = new Date().toISOString();
  const run = {
    id: 'id1',
    planUid,
    version: NEW,
    started: time,
    ended: time,
    phase: 'done',
    counts,
    before: [{ role: 'worker', version: OLD, nodes: ['w1'] }],
    downloads,
  };
  const { items } = await client.listAll(nodeRollouts, {});
  const { name = '', namespace = '' } = items[0]?.metadata ?? {};
  const status = { phase: 'done', history: [run] };
  await client.patch(nodeRollouts, name, { status }, { ...ofStatus, namespace });
}

const LONG = 'a'.repeat(601);
const SEEN = '0'.repeat(64);

test.each([
  { action: 'start', plan, for: '2h' },
  { action: 'start', plan, for: 7200, isConfirmed: true },
  { action: 'start', plan, for: 'h'.repeat(41), isConfirmed: true },
  { action: 'start', plan, for: '2h', blackouts: false, isConfirmed: true },
  { action: 'start', plan, for: '2h', reason: 'a'.repeat(501), isConfirmed: true },
  { action: 'start', plan, for: '2h', dryRun: 'client', isConfirmed: true },
  { action: 'accept', plan, check: '', isConfirmed: true },
  { action: 'accept', plan, check: LONG, isConfirmed: true },
  { action: 'accept', plan, check: 'a', isConfirmed: 'true' },
  { action: 'retry-skipped', plan: LONG, isConfirmed: true },
  { action: 'retry-skipped', plan },
  { action: 'rollback', plan, isConfirmed: false },
  { action: 'rollback', plan, reason: ' ', isConfirmed: false },
  { action: 'rollback', plan, reason: 'a'.repeat(501), isConfirmed: false },
  { action: 'rollback', plan, reason: 'a', image: 'a'.repeat(1025), isConfirmed: false },
  { action: 'rollback', plan, reason: 'a', run: 'id0', isConfirmed: false },
  { action: 'rollback', plan, reason: 'a', isConfirmed: true },
  { action: 'rollback', plan, reason: 'a', isConfirmed: true, typed: 'yes' },
  { action: 'rollback', plan, reason: 'a', isConfirmed: true, typed: 'y', seen: SEEN },
  { action: 'rollback', plan, reason: 'a', isConfirmed: true, typed: 'yes', seen: 'a' },
])('a request that is not exactly an action is none: %j', (request) => {
  expect(actionIn(JSON.stringify(request))).toBeUndefined();
});
