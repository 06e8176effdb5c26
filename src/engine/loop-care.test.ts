/** Tests how the loop handles drains: drain previews, delegations, and drains that start only once. */

import { expect, test } from 'vitest';
import { knowledgeOf } from '../../test/support/builders/knowledge.ts';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { failed, NONE, working } from '../../test/support/builders/observations.ts';
import { buildPolicy } from '../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import type { DrainPreview } from '../drain/drain-preview.ts';
import type { DrainState, Drains } from '../drain/running-drains.ts';
import { nodes } from '../kube/resources.ts';
import { TransportError } from '../kube/status-error.ts';
import { noMetrics } from '../runtime/metrics.ts';
import type { ReconcileResult } from '../runtime/run-controller.ts';
import { silentLogger } from '../util/log.ts';
import type { Dialect } from './contract/dialect.ts';
import type { DrainDelegation } from './contract/features.ts';
import { createReconciler } from './loop.ts';
import type { Observation } from './model/facts.ts';
import type { Target } from './model/rollout.ts';
import type { RolloutPolicy } from './policy/rollout-policy.ts';
import { createReporter } from './report/reporter.ts';
import { viewsOf } from './snapshot/world.ts';

const nodeOf: DrainDelegation['nodeOf'] = (_stage, { name }, world) => world.get(nodes, name);
const dialect: Dialect<TablePlan> = { ...tableDialect, drainDelegation: { nodeOf, always: true } };

const FREE: DrainPreview = { evictable: 1, obstacles: [], refused: [] };
const HELD: DrainPreview = {
  ...FREE,
  obstacles: [{ budget: 'default/web', pods: ['default/web-0'], reason: 'never' }],
};
const { drain } = buildPolicy();
/** With this policy, a node is not cordoned while its budgets allow no disruption. */
const WAITS = buildPolicy({ drain: { ...drain, waitsForBudgets: true } });

function apiWith(workers: readonly string[]): MemoryApi {
  const api = new MemoryApi();
  for (const name of workers) api.put(nodes, buildNode(name));
  api.put(dialect.plans, buildTablePlan({ workers }));
  return api;
}

interface Leader {
  look(): Promise<ReconcileResult>;
  /** Returns how many drain previews of nodes the leader requested. */
  readonly looks: () => number;
  /** Returns in how many turns the leader requested drain previews. */
  readonly begun: () => number;
  /** The recorded Events, each as the name of the object and the code. */
  readonly told: readonly string[];
}

interface Parts {
  readonly drains?: Drains;
  readonly spoken?: Dialect<TablePlan>;
  /** The names of nodes whose drain preview gets no answer. */
  readonly mute?: readonly string[];
  readonly clock?: FakeClock;
  readonly policy?: RolloutPolicy;
}

/** Returns a leader whose caches are current in each turn. `free` are the nodes whose drain has no obstacle. */
function leaderOf(api: MemoryApi, free: readonly string[], parts: Parts = {}): Leader {
  const { drains, spoken = dialect, mute = [], clock = new FakeClock(T0), policy = WAITS } = parts;
  let looks = 0;
  let begun = 0;
  const told: string[] = [];
  const plans = api.view(spoken.plans);
  const watched = spoken.watched.map(({ resource }) => [resource, api.view(resource)] as const);
  const effects = { dialect: spoken, client: api.client, ...knowledgeOf(viewsOf(watched)) };
  const reconcile = createReconciler({
    ...effects,
    plans,
    policyFor: () => policy,
    clock,
    drains,
    prober: {
      askControlPlane: async () => await Promise.resolve([]),
      previewDrains: () => {
        begun++;
        const ahead = async (node: string): Promise<DrainPreview> => {
          looks++;
          if (mute.includes(node)) throw new TransportError('no answer', { maybeApplied: false });
          return await Promise.resolve(free.includes(node) ? FREE : HELD);
        };
        return { ahead };
      },
    },
    reporter: createReporter({
      ...effects,
      log: silentLogger,
      metrics: noMetrics,
      recordEvent: ({ metadata }, { reason }) => void told.push(`${metadata.name} ${reason.code}`),
    }),
  });
  return {
    looks: () => looks,
    begun: () => begun,
    told,
    look: async () => {
      for (const view of [plans, ...watched.map(([, each]) => each)]) view.catchUp();
      return await reconcile('plan');
    },
  };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index}`);

function intendedIn(api: MemoryApi): string[] {
  const stages = api.read(dialect.plans, 'plan').status?.stages ?? [];
  return stages.flatMap(({ targets }) =>
    targets.filter(({ state }) => state === 'intended').map(({ name }) => name),
  );
}

test('nodes whose drain can never end do not block the ones behind them', async () => {
  const api = apiWith(names(40));
  const leader = leaderOf(api, ['w39']);
  await leader.look();
  expect(intendedIn(api)).toEqual(['w39']);
  expect(leader.begun()).toBe(1);
});

test('by default a node whose budget allows no disruption starts in its turn, because an operator may change the budget', async () => {
  const api = apiWith(names(40));
  const leader = leaderOf(api, ['w39'], { policy: buildPolicy() });
  await leader.look();
  expect(intendedIn(api)).toEqual(['w0']);
});

test('when no node can be drained, some nodes are asked, and again only after a pause', async () => {
  const api = apiWith(names(500));
  const clock = new FakeClock(T0);
  const leader = leaderOf(api, [], { clock });
  expect(await leader.look()).toEqual({ requeueAfterMs: 5000, restMs: 25 });
  const asked = leader.looks();
  expect(asked).toBeLessThan(200);
  await leader.look();
  expect(leader.looks()).toBe(asked);
  await clock.advance(5_000);
  await leader.look();
  expect(leader.looks()).toBeGreaterThan(asked);
  expect(api.read(dialect.plans, 'plan').status?.blocked).toBe(true);
});

test('the leader asks for previews of no more drainable nodes than may start', async () => {
  const leader = leaderOf(apiWith(names(40)), names(40));
  await leader.look();
  expect(leader.looks()).toBe(1);
});

/** Simulates drains that begin and never end. They are stored by node and attempt. */
class SlowDrains implements Drains {
  readonly begun = new Set<string>();

  stateOf(node: string, owner: string): DrainState | undefined {
    return this.begun.has(`${node} ${owner}`)
      ? { kind: 'draining', since: T0, left: 1 }
      : undefined;
  }

  begin(node: string, owner: string): void {
    this.begun.add(`${node} ${owner}`);
  }

  async forget(node: string): Promise<void> {
    await Promise.resolve();
    for (const each of this.begun) if (each.startsWith(`${node} `)) this.begun.delete(each);
  }

  keep(isWanted: (node: string, owner: string) => boolean): void {
    for (const each of this.begun) {
      const [node = '', owner = ''] = each.split(' ');
      if (!isWanted(node, owner)) this.begun.delete(each);
    }
  }

  onChange(): () => void {
    return () => undefined;
  }

  async run(): Promise<void> {
    await Promise.resolve();
  }
}

const ASKING = {
  kind: 'working',
  step: 'Cordoning',
  attempt: later(0),
  since: later(0),
  waitsFor: 'drain',
} as const;
const OWN_DRAIN = `w0 plan-uid/${later(0)}/Plan`;

test('a node that delegates its drain is asked once, others at each reconcile', async () => {
  const asked: string[] = [];
  const api = apiWhere(ASKING);
  const stage = buildStage(
    'worker',
    ['w0', 'w1'].map((name) => buildTarget(name, 'intended')),
    { maxInFlight: 2 },
  );
  api.put(nodes, withAnswer({ ...buildNode('w1'), spec: { unschedulable: true } }, ASKING));
  api.change(dialect.plans, 'plan', (plan) => ({ ...plan, status: buildRollout([stage]) }));
  const drainDelegations = async (
    _client: unknown,
    _stage: unknown,
    { name }: Target,
  ): Promise<boolean> => {
    asked.push(name);
    return await Promise.resolve(name === 'w0');
  };
  const leader = leaderOf(api, [], {
    drains: new SlowDrains(),
    spoken: { ...dialect, drainDelegation: { nodeOf, isDelegated: drainDelegations } },
  });
  await leader.look();
  await leader.look();
  expect(asked).toEqual(['w0', 'w1', 'w1']);
});

test('a node whose drain delegation is unknown waits, the others do not', async () => {
  const api = apiWhere(ASKING);
  const both = ['w0', 'w1'].map((name) => buildTarget(name, 'intended'));
  const stage = buildStage('worker', both, { maxInFlight: 2 });
  api.put(nodes, withAnswer({ ...buildNode('w1'), spec: { unschedulable: true } }, ASKING));
  api.change(dialect.plans, 'plan', (plan) => ({ ...plan, status: buildRollout([stage]) }));
  const drains = new SlowDrains();
  let silent = true;
  const drainDelegations = async (
    _client: unknown,
    _stage: unknown,
    { name }: Target,
  ): Promise<boolean> => {
    if (silent && name === 'w0') throw new TransportError('no answer', { maybeApplied: false });
    return await Promise.resolve(true);
  };
  const clock = new FakeClock(T0);
  const leader = leaderOf(api, [], {
    drains,
    clock,
    spoken: { ...dialect, drainDelegation: { nodeOf, isDelegated: drainDelegations } },
  });
  expect(await leader.look()).toEqual({ requeueAfterMs: 2000 });
  expect([...drains.begun]).toEqual([`w1 plan-uid/${later(0)}/Plan`]);
  silent = false;
  await clock.advance(2000);
  await leader.look();
  expect([...drains.begun].toSorted()).toEqual([OWN_DRAIN, `w1 plan-uid/${later(0)}/Plan`]);
});

test('a node whose drain preview has no answer waits, and the next one starts', async () => {
  const api = apiWith(names(3));
  await leaderOf(api, names(3), { mute: ['w0'] }).look();
  expect(intendedIn(api)).toEqual(['w1']);
});

test('without any answer about drains, all nodes wait', async () => {
  const api = apiWith(names(3));
  expect(await leaderOf(api, [], { mute: names(3) }).look()).toEqual({ requeueAfterMs: 2000 });
  expect(api.read(dialect.plans, 'plan').status?.blocked).toBe(true);
});

/** Returns an API server with one cordoned worker, whose target is intended and which reports `observation`. */
function apiWhere(observation: Observation): MemoryApi {
  const api = apiWith(['w0']);
  const stage = buildStage('worker', [buildTarget('w0', 'intended')]);
  api.change(dialect.plans, 'plan', (plan) => ({ ...plan, status: buildRollout([stage]) }));
  api.change(nodes, 'w0', (node) =>
    withAnswer({ ...node, spec: { unschedulable: true } }, observation),
  );
  return api;
}

test('the deadline of a started drain wakes the leader', async () => {
  const drains = new SlowDrains();
  const outcome = await leaderOf(apiWhere(ASKING), ['w0'], { drains }).look();
  expect([...drains.begun]).toEqual([OWN_DRAIN]);
  expect(outcome).toEqual({ requeueAfterMs: buildPolicy().stepDeadlines.drain });
});

test('a drain of a node that has changed is decided again soon, and reported once it starts', async () => {
  const api = apiWhere(ASKING);
  const drains = new SlowDrains();
  api.before('get nodes/w0', () => api.change(nodes, 'w0', (node) => node));
  const leader = leaderOf(api, ['w0'], { drains });
  // The leader must plan the next turn itself, because a watch event may never come.
  expect(await leader.look()).toEqual({ requeueAfterMs: 1000 });
  expect([...drains.begun, ...leader.told]).toEqual([]);
  await leader.look();
  expect([...drains.begun, ...leader.told]).toEqual([OWN_DRAIN, 'w0 Draining']);
});

test.each<[string, Observation]>([
  ['says that it failed', failed('disk full')],
  ['goes on by itself', working('ApplyingUpdate')],
  ['says nothing any more', NONE],
])(
  'the drain of a node that %s is ended: pods of an uncordoned node must stay',
  async (_name, observation) => {
    const drains = drainsOfBoth();
    await leaderOf(apiWhere(observation), [], { drains, clock: new FakeClock(T0 + MINUTE) }).look();
    expect([...drains.begun]).toEqual([FOREIGN_DRAIN]);
  },
);

test('the drain of a Node that was deleted is ended: pods of a new one of that name must stay', async () => {
  const api = apiWhere(ASKING);
  const drains = drainsOfBoth();
  api.remove(nodes, 'w0');
  await leaderOf(api, [], { drains, clock: new FakeClock(T0 + MINUTE) }).look();
  expect([...drains.begun]).toEqual([FOREIGN_DRAIN]);
});

const FOREIGN_DRAIN = `w7 other-uid/${later(0)}/Plan`;

/** Returns the drain of this plan and the drain of another plan. */
function drainsOfBoth(): SlowDrains {
  const drains = new SlowDrains();
  for (const each of [OWN_DRAIN, FOREIGN_DRAIN]) drains.begun.add(each);
  return drains;
}
