/** Tests the loop around the decision: the order of the writes, and that nothing more is written after a conflict. */

import { describe, expect, test } from 'vitest';
import { knowledgeOf } from '../../test/support/builders/knowledge.ts';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { buildControlNode, buildNode } from '../../test/support/builders/nodes.ts';
import { succeeded, working } from '../../test/support/builders/observations.ts';
import { buildPolicy } from '../../test/support/builders/rollout-policies.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  tableDialect as dialect,
  TABLE_OBJECTS,
  type TablePlan,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { HOUR, later, MINUTE, T0 } from '../../test/support/clock/times.ts';
import { StatusError, TransportError } from '../kube/status-error.ts';
import { noMetrics } from '../runtime/metrics.ts';
import type { ReconcileResult } from '../runtime/run-controller.ts';
import { silentLogger } from '../util/log.ts';
import type { Dialect } from './contract/dialect.ts';
import { createReconciler } from './loop.ts';
import type { Observation } from './model/facts.ts';
import type { Role } from './model/rollout.ts';
import { createReporter } from './report/reporter.ts';
import { OwnWrites, viewsOf } from './snapshot/world.ts';

/** One leader with one API server. Its views show changes only after they catch up. */
class Leader {
  readonly asked: string[][] = [];
  readonly told: string[] = [];
  readonly #catchUps: (() => void)[];
  readonly #reconcile: ReturnType<typeof createReconciler>;
  notReady: string[] = [];

  constructor(api: MemoryApi, clock = new FakeClock(T0), spoken: Dialect<TablePlan> = dialect) {
    const plans = api.view(spoken.plans);
    const watched = spoken.watched.map(({ resource }) => [resource, api.view(resource)] as const);
    this.#catchUps = [plans, ...watched.map(([, view]) => view)].map(
      (view) => () => view.catchUp(),
    );
    const effects = {
      dialect: spoken,
      client: api.client,
      ...knowledgeOf(viewsOf(watched), new OwnWrites(clock)),
    };
    this.#reconcile = createReconciler({
      ...effects,
      plans,
      policyFor: () => buildPolicy(),
      clock,
      prober: {
        askControlPlane: async (endpoints) => {
          this.asked.push(endpoints.map(({ name }) => name));
          const health = endpoints.map(({ name }) => ({
            name,
            ready: !this.notReady.includes(name),
          }));
          return await Promise.resolve(health);
        },
      },
      reporter: createReporter({
        ...effects,
        log: silentLogger,
        metrics: noMetrics,
        recordEvent: (object, { reason }) => {
          if ('spec' in object) this.told.push(`${reason.code}: ${reason.message}`);
        },
      }),
    });
  }

  catchUp(): void {
    for (const catchUp of this.#catchUps) catchUp();
  }

  async see(abort?: AbortSignal): Promise<ReconcileResult> {
    this.catchUp();
    return await this.#reconcile('plan', abort ? { abort } : {});
  }

  async reconcileUnchanged(): Promise<ReconcileResult> {
    return await this.#reconcile('plan');
  }
}

function apiWith(plan: TablePlan): MemoryApi {
  const api = new MemoryApi();
  for (const name of ['c1', 'c2', 'c3']) api.put(TABLE_OBJECTS.controller, buildControlNode(name));
  for (const name of ['w1', 'w2']) api.put(TABLE_OBJECTS.worker, buildNode(name));
  api.put(dialect.plans, plan);
  return api;
}

const answer = (api: MemoryApi, role: Role, name: string, observation: Observation): void =>
  api.change(TABLE_OBJECTS[role], name, (object) => withAnswer(object, observation));
const done = (api: MemoryApi, role: Role, name: string): void =>
  answer(api, role, name, succeeded());

/** Returns the recorded states of the targets, by name. */
function statesOf(api: MemoryApi): object {
  const { status } = api.read(dialect.plans, 'plan');
  return Object.fromEntries(
    (status?.stages ?? []).flatMap(({ targets }) =>
      targets.map(({ name, state }) => [name, state]),
    ),
  );
}

const writes = (api: MemoryApi): string[] => api.calls.filter((call) => call.startsWith('replace'));
const RECORD = 'replace plans/plan/status';
const SIGNAL_C1 = 'replace hosts/c1';
const SIGNAL_W1 = 'replace nodes/w1';

describe('a plan from its creation to its end', () => {
  const api = apiWith(buildTablePlan({ controllers: ['c1'], workers: ['w1', 'w2'] }));
  const leader = new Leader(api);

  test('Refit asks every API server and records the intent before it sends the first signal', async () => {
    await leader.see();
    expect(api.calls).toEqual([RECORD, SIGNAL_C1]);
    expect(leader.asked).toEqual([['c1', 'c2', 'c3']]);
    expect(leader.told).toEqual(['Started: 3 targets in 2 stages']);
  });

  test('an event that changes nothing writes nothing; the deadline is the next recheck', async () => {
    expect(await leader.see()).toEqual({ requeueAfterMs: 5 * MINUTE });
    expect(writes(api)).toHaveLength(2);
  });

  test('one write records a finished controller and the intent for the next node', async () => {
    done(api, 'controller', 'c1');
    await leader.see();
    expect(statesOf(api)).toEqual({ c1: 'done', w1: 'intended', w2: 'pending' });
    expect(writes(api).slice(2)).toEqual([RECORD, SIGNAL_W1]);
  });

  test('it ends with the last worker: two writes for each target, and one more to end', async () => {
    done(api, 'worker', 'w1');
    await leader.see();
    done(api, 'worker', 'w2');
    expect(await leader.see()).toEqual({});
    expect(api.read(dialect.plans, 'plan').status?.phase).toBe('done');
    expect(writes(api)).toHaveLength(7);
    expect(leader.told).toEqual([
      'Started: 3 targets in 2 stages',
      'Completed: all 3 targets are done',
    ]);
  });

  test('a finished rollout stays unchanged, also under a new leader', async () => {
    expect(await leader.see()).toEqual({});
    expect(await new Leader(api).see()).toEqual({});
    expect(writes(api)).toHaveLength(7);
  });
});

describe('what is not there', () => {
  test.each<[string, (api: MemoryApi) => void]>([
    ['a plan that was never there', (api) => api.remove(dialect.plans, 'plan')],
    [
      'a plan on its way out',
      (api) =>
        api.change(dialect.plans, 'plan', (plan) => ({
          ...plan,
          metadata: { ...plan.metadata, deletionTimestamp: later(0) },
        })),
    ],
  ])('%s: nothing is asked or written', async (_name, prepare) => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    prepare(api);
    const leader = new Leader(api);
    expect(await leader.see()).toEqual({});
    expect([api.calls, leader.asked]).toEqual([[], []]);
  });
});

describe('the health of the API servers', () => {
  test('if an API server is not ready, Refit records this once, asks again after 1 s and sends no signal', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    const leader = new Leader(api);
    leader.notReady = ['c3'];
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    expect(writes(api)).toEqual([RECORD]);
    expect(api.read(dialect.plans, 'plan').status?.blocked).toBe(true);
    leader.notReady = [];
    await leader.see();
    expect(statesOf(api)).toEqual({ c1: 'intended' });
  });

  test('is not asked where only workers are left', async () => {
    const leader = new Leader(apiWith(buildTablePlan({ workers: ['w1'] })));
    await leader.see();
    expect(leader.asked).toEqual([]);
  });

  test('is asked once for each reconcile, not for each decision', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1', 'c2'] }));
    const leader = new Leader(api);
    await leader.see();
    done(api, 'controller', 'c1');
    await leader.see();
    expect(statesOf(api)).toEqual({ c1: 'done', c2: 'intended' });
    expect(leader.asked).toHaveLength(2);
  });

  test('blocks an intent that another leader recorded before an API server went down', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    const first = new Leader(api);
    api.before(SIGNAL_C1, () => {
      throw new TransportError('cut off', { maybeApplied: false });
    });
    await expect(first.see()).rejects.toThrow('cut off');
    const second = new Leader(api);
    second.notReady = ['c2'];
    expect(await second.see()).toEqual({ requeueAfterMs: 1000 });
    expect(api.calls.filter((call) => call === SIGNAL_C1)).toHaveLength(1);
  });
});

describe('a view that lags behind', () => {
  test('of the plan: a recorded decision is not taken again', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    const leader = new Leader(api);
    await leader.see();
    await leader.reconcileUnchanged();
    await leader.reconcileUnchanged();
    expect(writes(api)).toEqual([RECORD, SIGNAL_C1]);
  });

  test('a new leader with an old view of the plan gets a conflict when it records, and signals no node', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1', 'w2'] }));
    const slow = new Leader(api);
    slow.catchUp();
    await new Leader(api).see();
    done(api, 'worker', 'w1');
    const before = writes(api).length;
    expect(await slow.reconcileUnchanged()).toEqual({ requeueAfterMs: 1000 });
    expect(writes(api).slice(before)).toEqual([RECORD]);
    expect(slow.told).toEqual([]);
  });

  test('a new leader with an old view of the plan notices the change before it sends a signal', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1', 'w2'] }));
    api.before(SIGNAL_W1, () => {
      throw new TransportError('cut off', { maybeApplied: false });
    });
    await expect(new Leader(api).see()).rejects.toThrow('cut off');
    const slow = new Leader(api);
    slow.catchUp();
    await new Leader(api).see();
    const before = writes(api).length;
    api.change(dialect.plans, 'plan', (plan) => plan);
    expect(await slow.reconcileUnchanged()).toEqual({ requeueAfterMs: 1000 });
    expect(writes(api)).toHaveLength(before);
  });
});

describe('a write that is lost', () => {
  const lost = (maybeApplied: boolean) => (): never => {
    throw new TransportError('no answer', { maybeApplied });
  };

  test('the record, refused: no signal; the watch brings the next decision', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    const leader = new Leader(api);
    api.before(RECORD, () => api.change(dialect.plans, 'plan', (plan) => plan));
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    expect([api.calls, leader.told]).toEqual([[RECORD], []]);
    await leader.see();
    expect(statesOf(api)).toEqual({ c1: 'intended' });
  });

  test('the record, since the plan was deleted meanwhile: no error', async () => {
    const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
    const leader = new Leader(api);
    api.before(RECORD, () => api.remove(dialect.plans, 'plan'));
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    expect(await leader.see()).toEqual({});
  });

  test('after a lost write of a signal, Refit reads the plan again and signals the same node', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1', 'w2'] }));
    const clock = new FakeClock(T0);
    const leader = new Leader(api, clock);
    api.before(SIGNAL_W1, lost(false));
    await expect(leader.see()).rejects.toThrow('no answer');
    await clock.advance(1000);
    await leader.see();
    expect(statesOf(api)).toEqual({ w1: 'intended', w2: 'pending' });
    expect(api.calls).toEqual([RECORD, SIGNAL_W1, 'get plans/plan', SIGNAL_W1]);
  });

  test('the signal, since the object changed: decided again on the new object', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1', 'w2'] }));
    const leader = new Leader(api);
    api.before(SIGNAL_W1, () => api.change(TABLE_OBJECTS.worker, 'w1', (node) => node));
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    await leader.see();
    expect(writes(api)).toEqual([RECORD, SIGNAL_W1, SIGNAL_W1]);
    expect(statesOf(api)).toEqual({ w1: 'intended', w2: 'pending' });
  });

  test('a node fails if its object is deleted before Refit writes the signal', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1'] }));
    const leader = new Leader(api);
    api.before(SIGNAL_W1, () => api.remove(TABLE_OBJECTS.worker, 'w1'));
    expect(await leader.see()).toEqual({ requeueAfterMs: 1000 });
    await leader.see();
    expect(leader.told).toEqual([
      'Started: 1 target in 1 stage',
      'TargetGone: w1 disappeared during its attempt',
      'Stopped: the plan ended before all targets were done: 0 of 1 targets done; failed: w1',
    ]);
  });

  test('if the write of a signal gets an internal server error, the reconcile ends with this error', async () => {
    const api = apiWith(buildTablePlan({ workers: ['w1'] }));
    api.before(SIGNAL_W1, () => {
      throw refusal(500, 'InternalError');
    });
    await expect(new Leader(api).see()).rejects.toBeInstanceOf(StatusError);
  });
});

test('unknown preconditions of a new plan are reported, nothing is recorded, and the probe is repeated', async () => {
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  let answers = [new TransportError('no answer', { maybeApplied: false })];
  const unmet = async (): Promise<[]> => {
    const [error] = answers;
    if (error) throw error;
    return await Promise.resolve([]);
  };
  const clock = new FakeClock(T0);
  const leader = new Leader(api, clock, { ...dialect, preconditions: { unmet } });
  expect(await leader.see()).toEqual({ requeueAfterMs: 2000 });
  expect(leader.told).toEqual([
    'CannotDecide: could not check the preconditions of the plan: no answer',
  ]);
  expect(writes(api)).toEqual([]);
  answers = [];
  await clock.advance(2000);
  await leader.see();
  expect(statesOf(api)).toEqual({ w1: 'intended' });
});

test('once a plan is gone, the next one in the same object is asked at once, and its failure is reported', async () => {
  const unmet = async (): Promise<[]> => await Promise.reject(new Error('no answer'));
  const clock = new FakeClock(T0);
  let isThere = true;
  const spoken = { ...dialect, planObjects: { isPlan: () => isThere }, preconditions: { unmet } };
  const leader = new Leader(apiWith(buildTablePlan({ workers: ['w1'] })), clock, spoken);
  await leader.see();
  isThere = false;
  await leader.see();
  isThere = true;
  await clock.advance(500);
  expect(await leader.see()).toEqual({ requeueAfterMs: 2000 });
  const failure = 'CannotDecide: could not check the preconditions of the plan: no answer';
  expect(leader.told).toEqual([failure, failure]);
});

test('a probe without an answer is repeated after growing pauses, and reported when its reason changes', async () => {
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  let words = 'no answer';
  let asked = 0;
  const unmet = async (): Promise<[]> => {
    asked++;
    throw await Promise.resolve(new TransportError(words, { maybeApplied: false }));
  };
  const clock = new FakeClock(T0);
  const leader = new Leader(api, clock, { ...dialect, preconditions: { unmet } });
  const waits: (number | undefined)[] = [];
  for (let count = 0; count < 7; count++) {
    const { requeueAfterMs = 0 } = await leader.see();
    waits.push(requeueAfterMs);
    await clock.advance(requeueAfterMs - 500);
    expect(await leader.see()).toEqual({ requeueAfterMs: 500 });
    await clock.advance(500);
  }
  expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  expect(asked).toBe(7);
  expect(leader.told).toHaveLength(1);
  words = 'refused';
  await leader.see();
  expect(leader.told.slice(1)).toEqual([
    'CannotDecide: could not check the preconditions of the plan: refused',
  ]);
});

test('a new plan with the name of one in backoff asks at once', async () => {
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  let asked = 0;
  const unmet = async (): Promise<[]> => {
    asked++;
    throw await Promise.resolve(new TransportError('no answer', { maybeApplied: false }));
  };
  const leader = new Leader(api, new FakeClock(T0), { ...dialect, preconditions: { unmet } });
  await leader.see();
  const plan = buildTablePlan({ workers: ['w1'] });
  api.put(dialect.plans, { ...plan, metadata: { ...plan.metadata, uid: 'another-uid' } });
  await leader.see();
  expect(asked).toBe(2);
  expect(leader.told).toHaveLength(2);
});

test('a reconcile whose time is over ends, whatever it was asking', async () => {
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  const over = new AbortController();
  const unmet = async (): Promise<[]> => {
    over.abort(new Error('its time is over'));
    throw await Promise.resolve(new TransportError('cut off', { maybeApplied: false }));
  };
  const leader = new Leader(api, new FakeClock(T0), { ...dialect, preconditions: { unmet } });
  await expect(leader.see(over.signal)).rejects.toThrow('its time is over');
  expect(leader.told).toEqual([]);
});

test('what a record starts is signalled before the next end is recorded, however fast they come', async () => {
  const api = apiWith(buildTablePlan({}));
  api.put(TABLE_OBJECTS.worker, buildNode('w3'));
  api.put(TABLE_OBJECTS.worker, buildNode('w4'));
  const workers = buildStage('worker', ['w1', 'w2', 'w3', 'w4'], { maxInFlight: 2 });
  api.change(dialect.plans, 'plan', (plan) => ({
    ...plan,
    spec: { ...plan.spec, stages: [workers] },
  }));
  const leader = new Leader(api);
  await leader.see();
  done(api, 'worker', 'w1');
  api.before('replace plans', () => {
    done(api, 'worker', 'w2');
    leader.catchUp();
  });
  expect(await leader.see()).toEqual({ requeueAfterMs: 1 });
  expect(writes(api).slice(3)).toEqual([RECORD, 'replace nodes/w3']);
  await leader.see();
  expect(writes(api).slice(5)).toEqual([RECORD, 'replace nodes/w4']);
});

test('an attempt under way is not signalled again, whoever leads', async () => {
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  await new Leader(api).see();
  answer(api, 'worker', 'w1', working('Downloading'));
  expect(await new Leader(api).see()).toEqual({ requeueAfterMs: 2 * HOUR });
  expect(writes(api)).toEqual([RECORD, SIGNAL_W1]);
});

test('a plan whose record is never written is left after some rounds and reconciled later', async () => {
  const forgetful: Dialect<TablePlan> = { ...dialect, resolve: ({ spec }) => spec };
  const api = apiWith(buildTablePlan({ workers: ['w1'] }));
  expect(await new Leader(api, new FakeClock(T0), forgetful).see()).toEqual({
    requeueAfterMs: 1000,
  });
  expect(writes(api).every((call) => call === RECORD)).toBe(true);
});

test('an object of the kind that is no plan: no request, no write', async () => {
  const api = apiWith(buildTablePlan({ controllers: ['c1'] }));
  const leader = new Leader(api, new FakeClock(T0), {
    ...dialect,
    planObjects: { isPlan: () => false },
  });
  expect(await leader.see()).toEqual({});
  expect(api.calls).toEqual([]);
  expect(leader.asked).toEqual([]);
});
