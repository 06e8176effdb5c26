/** Tests when NodeRollouts are read and written, what is written at once, and what happens after refusals. */
import { expect, test } from 'vitest';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { MemoryApi, refusal } from '../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { nodeRollouts } from '../../api/kinds.ts';
import type { NodeRollout } from '../../api/refit/node-rollout.ts';
import type { KubeClient } from '../../kube/client.ts';
import { assess } from '../assess/assess.ts';
import { type PlanReading, readPlan } from '../explain/plan-reading.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState, Rollout } from '../model/rollout.ts';
import type { Outside } from './node-rollout-status.ts';
import { type NodeRolloutParts, nodeRolloutWriter } from './node-rollout-writer.ts';
import { traceIdOf } from './spans.ts';

const NAME = 'table-plan';
const PLAN = { metadata: { name: 'plan', uid: 'plan-uid' } };

function rolloutOf(states: readonly RecordedState[], more: Partial<Rollout> = {}): Rollout {
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  return buildRollout([buildStage('worker', targets, { version: 'v2' })], more);
}

interface Given {
  readonly outside?: Outside;
  readonly change?: (reading: PlanReading) => PlanReading;
  readonly plan?: typeof PLAN;
}

/** Returns the writer of a leader, and the calls that it makes, with their namespaces. */
function scene(more: Partial<NodeRolloutParts> = {}) {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const lines: string[] = [];
  const namespaces: (string | undefined)[] = [];
  const types = new Set<string | undefined>();
  const { client } = api;
  const watched = {
    ...client,
    get: async (...args: Parameters<KubeClient['get']>) => {
      namespaces.push(args[2]?.namespace);
      return await client.get(...args);
    },
    create: async (...args: Parameters<KubeClient['create']>) => {
      namespaces.push(args[2]?.namespace);
      return await client.create(...args);
    },
    patch: async (...args: Parameters<KubeClient['patch']>) => {
      namespaces.push(args[3].namespace);
      types.add(args[3].type);
      return await client.patch(...args);
    },
  } as KubeClient;
  const writer = nodeRolloutWriter({
    dialect: { ...tableDialect, nodeRollouts: { namespace: 'ns' } },
    client: watched,
    clock,
    log: buildLog(lines, 'info'),
    plans: () => [PLAN],
    ...more,
  });
  const start = (rollout: Rollout, given: Given = {}): number | undefined => {
    const { outside, change = (reading: PlanReading) => reading, plan = PLAN } = given;
    const assessment = assess(buildSnapshot(rollout), buildPolicy(), clock.now());
    const reading = change(readPlan(assessment, { waits: [] }));
    return writer.show({ plan, assessment }, reading, outside);
  };
  const show = async (rollout: Rollout, given: Given = {}): Promise<number | undefined> => {
    const again = start(rollout, given);
    await writer.flush();
    return again;
  };
  const read = (): NodeRollout => api.read(nodeRollouts, NAME);
  /** Returns the calls since the last time. */
  const calls = (): string[] => api.calls.splice(0);
  const logged = (): string[] =>
    lines.splice(0).map((line) => {
      const { level, msg, problem } = JSON.parse(line) as Record<string, string>;
      return `${level} ${msg}: ${problem}`;
    });
  return { api, clock, namespaces, types, writer, start, show, read, calls, logged };
}

const CREATED = [
  'list noderollouts',
  `get noderollouts/${NAME}`,
  `create noderollouts/${NAME}`,
  `patch noderollouts/${NAME}/status`,
];
const STATUS = `patch noderollouts/${NAME}/status`;
const RUNNING = rolloutOf(['intended', 'pending']);

test('a new NodeRollout names its plan, and has labels by which it is found', async () => {
  const { namespaces, show, read, calls } = scene();
  expect(await show(RUNNING)).toBeUndefined();
  expect(calls().toSorted()).toEqual(CREATED.toSorted());
  expect(await show(RUNNING)).toBeUndefined();
  expect(namespaces).toEqual(['ns', 'ns', 'ns']);
  const { apiVersion, kind, metadata, spec } = read();
  expect({ apiVersion, kind, spec }).toEqual({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'NodeRollout',
    spec: { plan: { apiVersion: 'example.com/v1', kind: 'Plan', name: 'plan', uid: 'plan-uid' } },
  });
  expect(metadata).toMatchObject({
    name: NAME,
    namespace: 'ns',
    labels: { 'app.kubernetes.io/managed-by': 'refit', 'upgrade.refit.dev/dialect': 'table' },
  });
});

test('nothing is read or written for a plan without a NodeRollout', async () => {
  const { show, calls } = scene({ dialect: tableDialect });
  expect(await show(RUNNING)).toBeUndefined();
  expect(calls()).toEqual([]);
});

test.each([true, false])('the trace of a run is shown only if traces are sent: %s', async (is) => {
  const { show, read } = scene(is ? { isTraced: true } : {});
  await show(RUNNING);
  expect(read().status?.history?.[0]?.traceId).toBe(is ? traceIdOf(RUNNING) : undefined);
});

const CHECK = { name: 'errors', state: 'passing', message: 'fine', since: T0, at: T0 } as const;
const HOOK = {
  hook: 'h',
  id: 'h-1',
  target: 'w1',
  state: 'running',
  message: 'x',
  since: T0,
} as const;
const withFindings =
  (findings: Partial<PlanReading['findings']>) =>
  (reading: PlanReading): PlanReading => ({
    ...reading,
    findings: { ...reading.findings, ...findings },
  });
const withSnapshot =
  (at: string) =>
  (reading: PlanReading): PlanReading => ({
    ...reading,
    run: reading.run && { ...reading.run, snapshotsSince: () => [{ node: 'c1', at }] },
  });

test.each<[string, Given, Given, boolean]>([
  [
    'another state of a check',
    { change: withFindings({ checks: [CHECK] }) },
    { change: withFindings({ checks: [{ ...CHECK, state: 'failing' }] }) },
    true,
  ],
  [
    'another message of a failing check',
    { change: withFindings({ checks: [{ ...CHECK, state: 'failing' }] }) },
    { change: withFindings({ checks: [{ ...CHECK, state: 'failing', message: 'other' }] }) },
    false,
  ],
  [
    'another state of a hook',
    { change: withFindings({ hooks: [HOOK] }) },
    { change: withFindings({ hooks: [{ ...HOOK, state: 'failed' }] }) },
    true,
  ],
  [
    'another message of a hook',
    { change: withFindings({ hooks: [HOOK] }) },
    { change: withFindings({ hooks: [{ ...HOOK, message: 'other' }] }) },
    false,
  ],
  ['a new snapshot of etcd', {}, { change: withSnapshot(later(0)) }, true],
  [
    'a later snapshot of etcd',
    { change: withSnapshot(later(0)) },
    { change: withSnapshot(later(1000)) },
    true,
  ],
  ['another version', {}, { change: (reading) => ({ ...reading, versions: ['v3'] }) }, true],
  [
    'another status of a condition',
    { outside: { delivery: { isGood: true, message: 'fine' } } },
    { outside: { delivery: { isGood: false, message: 'fine' } } },
    true,
  ],
  [
    'another message of a condition',
    { outside: { delivery: { isGood: true, message: 'fine' } } },
    { outside: { delivery: { isGood: true, message: 'well' } } },
    false,
  ],
])('%s is written at once, or within twenty seconds', async (_title, before, after, isAtOnce) => {
  const { clock, show, calls } = scene();
  await show(RUNNING, before);
  calls();
  await clock.advance(5000);
  expect(await show(RUNNING, after)).toBe(isAtOnce ? undefined : 15_000);
  expect(calls()).toEqual(isAtOnce ? [STATUS] : []);
  await clock.advance(15_000);
  await show(RUNNING, after);
  expect(calls()).toEqual(isAtOnce ? [] : [STATUS]);
});

test('while a write is under way, no other write begins', async () => {
  const { start, writer, calls } = scene();
  const done = rolloutOf(['done', 'done'], { phase: 'done' });
  start(RUNNING);
  await writer.flush();
  calls();
  expect(start(done)).toBeUndefined();
  expect(start(rolloutOf(['done', 'failed'], { phase: 'failed' }))).toBe(20_000);
  await writer.flush();
  expect(calls()).toEqual([STATUS]);
});

test('a NodeRollout is read again after five minutes, and created again if somebody deleted it', async () => {
  const { api, clock, show, calls } = scene();
  await clock.advance(200_000);
  await show(RUNNING);
  await clock.advance(299_999);
  calls();
  expect(await show(RUNNING)).toBeUndefined();
  expect(calls()).toEqual([]);
  api.remove(nodeRollouts, NAME);
  await clock.advance(1);
  await show(RUNNING);
  expect(calls()).toEqual(CREATED.slice(1));
});

test('a NodeRollout that was read again and shows everything is not written', async () => {
  const { clock, show, calls } = scene();
  await show(RUNNING);
  await clock.advance(300_000);
  calls();
  await show(RUNNING);
  expect(calls()).toEqual([`get noderollouts/${NAME}`]);
});

test('a NodeRollout that somebody deleted before a write is created in the next turn', async () => {
  const { api, show, calls } = scene();
  await show(RUNNING);
  api.remove(nodeRollouts, NAME);
  calls();
  await show(rolloutOf(['done', 'done'], { phase: 'done' }));
  expect(calls()).toEqual([STATUS]);
  await show(rolloutOf(['done', 'done'], { phase: 'done' }));
  expect(calls()).toEqual(CREATED.slice(1));
});

test('the decisions of people about a former plan with the same name do not apply to a new plan', async () => {
  const { api, clock, namespaces, types, show, read } = scene();
  await show(RUNNING);
  api.change(nodeRollouts, NAME, (shown) => ({
    ...shown,
    spec: { ...shown.spec, approvals: [{ wave: 1 }], accepted: [{ check: 'errors' }] },
  }));
  const source = { ...RUNNING.source, uid: 'new-uid' };
  await clock.advance(20_000);
  await show({ ...RUNNING, source });
  expect(read().spec).toEqual({
    plan: { apiVersion: 'example.com/v1', kind: 'Plan', name: 'plan', uid: 'new-uid' },
  });
  expect(read().status?.history?.map(({ planUid, phase }) => `${planUid} ${phase}`)).toEqual([
    'new-uid running',
    'plan-uid deleted',
  ]);
  expect([new Set(namespaces), types]).toEqual([new Set(['ns']), new Set(['merge'])]);
});

test('a NodeRollout is assigned to a new plan even if both plans have not begun', async () => {
  const { clock, show, read } = scene();
  const unbegun: Rollout = { ...RUNNING, phase: 'new' };
  await show(unbegun);
  await clock.advance(20_000);
  await show({ ...unbegun, source: { ...unbegun.source, uid: 'new-uid' } });
  expect(read().spec.plan.uid).toBe('new-uid');
});

test.each<[string, (shown: NodeRollout) => NodeRollout]>([
  [
    'shows already',
    (shown) => ({ ...shown, status: { ...shown.status, version: 'v9', planDeleted: later(0) } }),
  ],
  [
    'shows of another plan',
    ({ spec, ...shown }) => ({
      ...shown,
      spec: { plan: { ...spec.plan, uid: 'other-uid' } },
      status: { ...shown.status, version: 'v9' },
    }),
  ],
])(
  'the last state of a deleted plan does not replace what its NodeRollout %s',
  async (_title, change) => {
    const { api, clock, writer, show, read } = scene();
    await show(RUNNING);
    await clock.advance(300_000);
    api.change(nodeRollouts, NAME, change);
    const before = read().status?.planDeleted;
    writer.gone('plan');
    await writer.flush();
    expect(read().status).toMatchObject({
      version: 'v9',
      planDeleted: before ?? later(300_000),
    });
  },
);

test('a plan that was deleted and is there again with the same uid is shown as it is', async () => {
  const { api, clock, writer, show, read } = scene();
  await show(RUNNING);
  writer.gone('plan');
  await writer.flush();
  expect(read().status?.phase).toBe('deleted');
  await show(RUNNING);
  expect([read().status?.phase, read().status?.planDeleted]).toEqual(['running', undefined]);
  // Another process shows that the plan was deleted, although it exists.
  api.change(nodeRollouts, NAME, (shown) => ({
    ...shown,
    status: { ...shown.status, planDeleted: later(0) },
  }));
  writer.begin();
  await clock.advance(1000);
  await show(RUNNING);
  expect(read().status?.planDeleted).toBeUndefined();
});

test('a plan that is deleted before its NodeRollout was created gets none', async () => {
  const { start, writer, calls, api } = scene();
  api.before('get', () => {
    throw refusal(500, 'InternalError');
  });
  start(RUNNING);
  await writer.flush();
  calls();
  writer.gone('plan');
  await writer.flush();
  expect(calls()).toEqual([`get noderollouts/${NAME}`]);
  writer.gone('plan');
  await writer.flush();
  expect(calls()).toEqual([]);
});

test('a new term reads everything again', async () => {
  const { show, writer, calls } = scene();
  await show(RUNNING);
  calls();
  writer.begin();
  await show(RUNNING);
  expect(calls().toSorted()).toEqual([`get noderollouts/${NAME}`, 'list noderollouts']);
});

test('NodeRollouts of deleted plans are searched once an hour', async () => {
  const { clock, show, calls } = scene();
  const searches = (): number => calls().filter((call) => call.startsWith('list')).length;
  await show(RUNNING);
  expect(searches()).toBe(1);
  await clock.advance(3_599_999);
  await show(RUNNING);
  expect(searches()).toBe(0);
  await clock.advance(1);
  await show(RUNNING);
  expect(searches()).toBe(1);
});

test('after a refusal nothing is tried for ten minutes, also for a deleted plan, and the log says it once', async () => {
  const { api, clock, writer, show, calls, logged } = scene();
  const refuse = (): void =>
    api.before('patch', () => {
      throw refusal(403, 'Forbidden', 'noderollouts is forbidden');
    });
  const told = ['info NodeRollouts are not written: noderollouts is forbidden'];
  refuse();
  await show(RUNNING);
  expect(logged()).toEqual(told);
  calls();
  expect(await show(RUNNING)).toBeUndefined();
  writer.gone('plan');
  await clock.advance(599_999);
  await show(RUNNING);
  expect(calls()).toEqual([]);
  await clock.advance(1);
  refuse();
  await show(RUNNING);
  expect([calls().length > 0, logged()]).toEqual([true, []]);
  // After a write that succeeded, the next refusal is news again.
  await clock.advance(600_000);
  await show(RUNNING);
  expect(calls()).toContain(STATUS);
  refuse();
  await show(rolloutOf(['done', 'done'], { phase: 'done' }));
  expect(logged()).toEqual(told);
});

test('after another error the next turn tries again, and the log warns of the same error once a minute', async () => {
  const { api, clock, show, calls, logged } = scene();
  const fail = (message: string): void =>
    api.before('create', () => {
      throw refusal(500, 'InternalError', message);
    });
  const told = (message: string) => `warn cannot write a NodeRollout: ${message}`;
  fail('etcd is slow');
  await show(RUNNING);
  expect(logged()).toEqual([told('etcd is slow')]);
  fail('etcd is slow');
  await show(RUNNING);
  expect(logged()).toEqual([]);
  fail('etcd is gone');
  await show(RUNNING);
  expect(logged()).toEqual([told('etcd is gone')]);
  calls();
  await clock.advance(1000);
  await show(RUNNING);
  expect(calls()).toContain(STATUS);
});

/** Runs a term that ends, and returns whether the writer has stopped. */
function stopped(writer: ReturnType<typeof scene>['writer']) {
  const stop = new AbortController();
  const state = { isOver: false };
  const running = writer.run(stop.signal).then(() => {
    state.isOver = true;
  });
  return { state, running, stop };
}

test('at the end of a term, what was not written yet is written', async () => {
  const { writer, show, read, calls } = scene();
  expect(writer.name).toBe('node-rollouts');
  const { state, running, stop } = stopped(writer);
  await show(RUNNING);
  await show(rolloutOf(['done', 'intended']));
  expect([read().status?.progress, state.isOver]).toEqual(['0/2', false]);
  calls();
  stop.abort();
  await running;
  expect([read().status?.progress, calls()]).toEqual(['1/2', [STATUS]]);
});

test('at the end of a term, nothing is written if everything is shown or writes are refused', async () => {
  const shown = scene();
  await shown.show(RUNNING);
  shown.calls();
  const first = stopped(shown.writer);
  first.stop.abort();
  await first.running;
  expect(shown.calls()).toEqual([]);
  expect(shown.clock.pending).toBe(0);

  const refused = scene();
  refused.api.before('create', () => {
    throw refusal(403, 'Forbidden');
  });
  await refused.show(RUNNING);
  refused.calls();
  const second = stopped(refused.writer);
  second.stop.abort();
  await second.running;
  expect(refused.calls()).toEqual([]);
});

test('the end of a term does not wait for an answer for longer than five seconds', async () => {
  const { promise } = Promise.withResolvers<never>();
  const { clock, writer, start } = scene({
    client: { ...new MemoryApi().client, get: async () => await promise },
  });
  start(RUNNING);
  const { state, running, stop } = stopped(writer);
  stop.abort();
  await clock.advance(4_999);
  expect(state.isOver).toBe(false);
  await clock.advance(1);
  await running;
  expect(state.isOver).toBe(true);
});

test('a plan that waits shortly is shown again when the wait is long enough to be told', async () => {
  const { show } = scene();
  const wait = { gate: 'not-paused', reason: because('Paused', 'x'), since: later(-4000) };
  const change = (reading: PlanReading): PlanReading => ({ ...reading, waits: [wait] });
  expect(await show(RUNNING, { change })).toBe(6000);
});
