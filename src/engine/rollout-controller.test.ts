/**
 * Tests what adds a plan to the queue of the controller of a dialect: every change of a plan, and every relevant change
 * of a target.
 */
import { expect, onTestFinished, test } from 'vitest';
import { buildControlNode, buildNode } from '../../test/support/builders/nodes.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { FakeClock, settle } from '../../test/support/clock/fake-clock.ts';
import { HOUR, later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import type { KubeClient, WatchEvent } from '../kube/client.ts';
import { type KubeObject, nodes, type Resource } from '../kube/resources.ts';
import { runController } from '../runtime/run-controller.ts';
import { silentLogger } from '../util/log.ts';
import type { Dialect } from './contract/dialect.ts';
import type { Target } from './model/rollout.ts';
import { DEFAULT_POLICY } from './policy/rollout-policy.ts';
import { type RolloutParts, rolloutController } from './rollout-controller.ts';

/** Returns a controller that can neither read nor write, unless `parts` replace its clients. */
const buildController = (dialect: Dialect, parts: Partial<RolloutParts> = {}) =>
  rolloutController(dialect, {
    reader: {} as unknown as KubeClient,
    writer: {} as unknown as KubeClient,
    policyFor: () => DEFAULT_POLICY,
    clock: new FakeClock(T0),
    log: silentLogger,
    prober: { askControlPlane: async () => await Promise.resolve([]) },
    recordEvent: () => undefined,
    ...parts,
  });

/** Yields the events of one watch: first an object, and after `heard` has resolved, these changes of the object. */
async function* play(
  object: KubeObject,
  changes: readonly Step[],
  heard: Promise<void>,
): AsyncGenerator<WatchEvent<KubeObject>> {
  yield { type: 'ADDED', object };
  yield initialEnd;
  await heard;
  yield* changes;
  await Promise.withResolvers<never>().promise;
}

/**
 * Returns the keys that are added to the queue by these changes. Before the changes, the server has one plan, one host
 * and one node.
 */
async function wokenBy(
  changes: { plans?: Step[]; hosts?: Step[]; nodes?: Step[] },
  dialect: Dialect<TablePlan> = tableDialect,
): Promise<string[]> {
  const plan = buildTablePlan({ controllers: ['c1'], workers: ['w1'] });
  const shown: Readonly<Record<string, KubeObject>> = {
    plans: plan,
    hosts: buildControlNode('c1'),
    nodes: buildNode('w1'),
  };
  const heard = Promise.withResolvers<void>();
  const watch = ({ plural }: Resource): AsyncIterable<WatchEvent<KubeObject>> =>
    play(shown[plural] ?? plan, changes[plural as keyof typeof changes] ?? [], heard.promise);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const controller = buildController(dialect, { reader: { watch } as unknown as KubeClient });
  for (const { informer } of controller.sources) void informer.run(stop.signal);
  await Promise.all(
    controller.sources.map(async ({ informer }) => await informer.whenSynced(stop.signal)),
  );
  const woken: string[] = [];
  for (const source of controller.sources) source.start((key) => woken.push(key));
  // These keys come from the objects that already exist: one from the plan itself, and one from each of its two
  // targets.
  expect(woken.splice(0)).toEqual(['plan', 'plan', 'plan']);
  heard.resolve();
  await settle();
  return woken;
}

type Step = WatchEvent<KubeObject>;
const initialEnd: Step = {
  type: 'BOOKMARK',
  object: {
    metadata: {
      name: '',
      resourceVersion: '1',
      annotations: { 'k8s.io/initial-events-end': 'true' },
    },
  },
};

const newer = <T extends KubeObject>(object: T, more: Partial<T> = {}): T => ({
  ...object,
  ...more,
  metadata: { ...object.metadata, resourceVersion: '2' },
});
const changed = (object: KubeObject): Step => ({ type: 'MODIFIED', object });
const answer = { kind: 'sent', attempt: later(0), since: later(0) } as const;

test.each<[string, Parameters<typeof wokenBy>[0], string[]]>([
  ['nothing', {}, []],
  ['the plan was changed', { plans: [changed(newer(buildTablePlan({})))] }, ['plan']],
  [
    'Refit reconciles the plan when a worker answers',
    { nodes: [changed(newer(withAnswer(buildNode('w1'), answer)))] },
    ['plan'],
  ],
  [
    'a controller answered',
    { hosts: [changed(newer(withAnswer(buildControlNode('c1'), answer)))] },
    ['plan'],
  ],
  [
    'a worker is not Ready any more',
    { nodes: [changed(newer(buildNode('w1', {}, 'False')))] },
    ['plan'],
  ],
  ['a worker sent a heartbeat', { nodes: [changed(newer(buildNode('w1')))] }, []],
  [
    'a worker was deleted',
    { nodes: [{ type: 'DELETED', object: newer(buildNode('w1')) }] },
    ['plan'],
  ],
  ['a worker came', { nodes: [{ type: 'ADDED', object: newer(buildNode('w2')) }] }, ['plan']],
])('these plans are reconciled if this changed: %s', async (_name, changes, keys) => {
  expect(await wokenBy(changes)).toEqual(keys);
});

test('an object that is a plan no longer wakes its key once more, so that what is told of it ends', async () => {
  const isPlan = ({ metadata }: KubeObject) => metadata.annotations?.['request'] !== 'removed';
  const plan = newer(buildTablePlan({}));
  const removed = { ...plan, metadata: { ...plan.metadata, annotations: { request: 'removed' } } };
  const again = { ...removed, metadata: { ...removed.metadata, resourceVersion: '3' } };
  const changes = { plans: [changed(removed), changed(again)] };
  expect(await wokenBy(changes, { ...tableDialect, planObjects: { isPlan } })).toEqual(['plan']);
});

/**
 * Returns the sources of a controller whose Nodes are only advisory. The controller watches the Nodes from the time at
 * which `isNeeded` returns true.
 */
function buildAdvised(clock: FakeClock, isNeeded: () => boolean) {
  const isRelevant = (before: KubeObject, after: KubeObject) =>
    before.metadata.labels !== after.metadata.labels;
  const watched: string[] = [];
  const watch = ({ plural }: Resource): AsyncIterable<WatchEvent<KubeObject>> => {
    watched.push(plural);
    return play(buildNode('w1', { labels: { stalled: 'yes' } }), [], Promise.resolve());
  };
  const { sources } = buildController(
    { ...tableDialect, watched: [{ resource: nodes, advisory: true, isNeeded, isRelevant }] },
    { reader: { watch } as unknown as KubeClient, clock },
  );
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const [plans, advice] = sources;
  if (!plans || !advice) throw new Error('the plans and the Nodes are sources');
  for (const { informer } of [plans, advice]) void informer.run(stop.signal);
  return { plans, advice, watched };
}

test('what only advises is read once it is needed, and what it then shows wakes the plan', async () => {
  let isNeeded = false;
  const clock = new FakeClock(T0);
  const { plans, advice, watched } = buildAdvised(clock, () => isNeeded);
  await plans.informer.whenSynced();
  await advice.informer.whenSynced();
  const woken: string[] = [];
  advice.start((key) => woken.push(key));
  await clock.advance(MINUTE);
  expect([watched, advice.informer.synced(), advice.informer.list(), woken]).toEqual([
    ['plans'],
    true,
    [],
    [],
  ]);
  isNeeded = true;
  await clock.advance(MINUTE);
  expect([watched, advice.informer.list().length, woken.length]).toEqual([
    ['plans', 'nodes'],
    1,
    1,
  ]);
});

test('what is needed from the start on is there when the caches are', async () => {
  const { advice } = buildAdvised(new FakeClock(T0), () => true);
  await advice.informer.whenSynced();
  expect(advice.informer.list()).toHaveLength(1);
});

test('plans that are targets too share one informer', () => {
  const { sources } = buildController({ ...tableDialect, plans: nodes });
  const [plans, ...watched] = sources.map(({ informer }) => informer);
  expect(watched.map(({ resource }) => resource.plural)).toEqual(['hosts', 'nodes']);
  expect(watched[1]).toBe(plans);
});

/** Returns a leader for a plan with one worker. Each call leads for the given number of milliseconds. */
async function leaderOn(
  worker: Target,
  node: KubeObject,
  clock: FakeClock,
  policy = DEFAULT_POLICY,
) {
  const rollout = buildRollout([buildStage('worker', [worker])], {
    blocked: worker.state === 'pending',
  });
  const plan = { ...buildTablePlan({}), status: rollout };
  const shown: Readonly<Record<string, KubeObject>> = { plans: plan, nodes: node };
  const watch = ({ plural }: Resource): AsyncIterable<WatchEvent<KubeObject>> =>
    play(shown[plural] ?? buildControlNode('c1'), [], Promise.resolve());
  const written: TablePlan[] = [];
  const replace = async (_resource: Resource, object: TablePlan): Promise<TablePlan> => {
    written.push(object);
    return await Promise.resolve(newer(object));
  };
  const controller = buildController(tableDialect, {
    reader: { watch } as unknown as KubeClient,
    writer: { replace } as unknown as KubeClient,
    policyFor: () => policy,
    clock,
  });
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  for (const { informer } of controller.sources) void informer.run(ending.signal);
  await settle();
  const lead = async (ms: number): Promise<void> => {
    const term = new AbortController();
    const running = runController(controller, term.signal, { clock });
    await clock.advance(ms);
    term.abort();
    await running;
  };
  return { lead, written };
}

test('a new term counts deadlines from its own start', async () => {
  const clock = new FakeClock(T0);
  const node = withAnswer(buildNode('w1'), answer);
  const { lead, written } = await leaderOn(buildTarget('w1', 'intended'), node, clock);
  const { answer: limit } = DEFAULT_POLICY.stepDeadlines;
  await lead(MINUTE);
  await clock.advance(8 * HOUR);
  await lead(limit - 1);
  expect(written).toEqual([]);
  await lead(limit);
  expect(written[0]?.status?.reason?.message).toBe('w1 did not report within its deadline');
});

class SetClock extends FakeClock {
  ahead = 0;

  override now(): number {
    return super.now() + this.ahead;
  }
}

test('a window that opens early, as the wall clock was set meanwhile, is found open', async () => {
  const clock = new SetClock(T0);
  const policy = { ...DEFAULT_POLICY, blackouts: [{ from: T0 - HOUR, to: T0 + 8 * HOUR }] };
  const { lead, written } = await leaderOn(buildTarget('w1'), buildNode('w1'), clock, policy);
  clock.schedule(MINUTE, () => {
    clock.ahead = 8 * HOUR;
  });
  await lead(15 * MINUTE);
  expect(written[0]?.status?.stages[0]?.targets[0]?.state).toBe('intended');
});
