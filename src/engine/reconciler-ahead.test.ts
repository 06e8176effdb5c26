/** Proves that targets which are recorded ahead start while the end of others is recorded, and never more than there are slots. */
import { expect, test, vi } from 'vitest';
import { pick, seededRandom } from '../../test/faults/random.ts';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { buildNode } from '../../test/support/builders/nodes.ts';
import { failed, succeeded } from '../../test/support/builders/observations.ts';
import { buildReconciler } from '../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../test/support/builders/snapshots.ts';
import { buildStage } from '../../test/support/builders/stages.ts';
import {
  buildTablePlan,
  type TablePlan,
  tableDialect,
  withAnswer,
} from '../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../test/support/builders/targets.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { T0 } from '../../test/support/clock/times.ts';
import type { KubeClient } from '../kube/client.ts';
import { annotated, nodes } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { evaluationsFor } from './assess/evaluate-target.ts';
import { ABORT_ANNOTATION } from './model/controls.ts';
import type { Observation } from './model/decision.ts';
import type { Stage } from './model/rollout.ts';
import type { Reporter } from './report/reporter.ts';
import { signalsOf } from './turn/decide.ts';

const RECORD = 'replace plans/plan/status';

function buildScene(count: number, maxInFlight: number, ahead: number, more: Partial<Stage> = {}) {
  const api = new MemoryApi();
  const clock = new FakeClock(T0);
  const names = Array.from({ length: count }, (_, index) => `w${index + 1}`);
  for (const name of names) api.put(nodes, buildNode(name));
  const { spec, ...plan } = buildTablePlan({});
  api.put(tableDialect.plans, {
    ...plan,
    spec: { ...spec, stages: [buildStage('worker', names, { maxInFlight, ahead, ...more })] },
  });
  const answerOf = (name: string): Observation =>
    tableDialect.signal.read(
      { get: () => api.read(nodes, name), list: () => [] } as never,
      spec,
      buildStage('worker', []),
      { key: name, name, state: 'intended', since: '' },
      api.read(tableDialect.plans, 'plan'),
    );
  const atWork = (): string[] => names.filter((name) => answerOf(name).kind === 'sent');
  const end = (name: string): void =>
    api.change(nodes, name, (node) => withAnswer(node, succeeded()));
  const record = () => api.read<TablePlan>(tableDialect.plans, 'plan').status?.stages[0];
  const writes = (): string[] => api.calls.filter((call) => call.startsWith('replace'));
  return { api, clock, names, atWork, end, record, writes };
}

/** Records wait until they are released. */
function holdRecords(client: KubeClient) {
  let held = Promise.withResolvers<void>();
  held.resolve();
  const replace: KubeClient['replace'] = async (resource, object, options) => {
    if (resource.plural === 'plans') await held.promise;
    return await client.replace(resource, object, options);
  };
  return {
    client: { ...client, replace },
    hold: () => void (held = Promise.withResolvers()),
    release: () => held.resolve(),
  };
}

test('the first record names what moves at once, and what starts next', async () => {
  const { api, record, writes } = buildScene(5, 2, 2);
  await buildReconciler(tableDialect, api).look();
  expect(record()?.targets.map(({ state }) => state)).toEqual([
    'intended',
    'intended',
    'pending',
    'pending',
    'pending',
  ]);
  expect(record()?.next).toEqual(['0/worker/w3', '0/worker/w4']);
  expect(writes()).toEqual([RECORD, 'replace nodes/w1', 'replace nodes/w2']);
});

test('the next target starts while the end of the one before is still to be recorded', async () => {
  const { api, clock, end, atWork, record } = buildScene(4, 1, 2);
  const { client, hold, release } = holdRecords(api.client);
  const { look, catchUp } = buildReconciler(tableDialect, api, { client, clock });
  await look();
  hold();
  end('w1');
  const looking = look();
  await clock.advance(0);
  expect(atWork()).toEqual(['w2']);
  end('w2');
  catchUp();
  await clock.advance(100);
  // Its success is verified once its start is recorded.
  expect(atWork()).toEqual([]);
  expect(record()?.targets.map(({ state }) => state)).toEqual([
    'intended',
    'pending',
    'pending',
    'pending',
  ]);
  release();
  await clock.runUntil(looking);
  await clock.runUntil(look());
  expect(atWork()).toEqual(['w3']);
  expect(record()?.next).toEqual(['0/worker/w4']);
  expect(record()?.targets.map(({ state }) => state)).toEqual([
    'done',
    'done',
    'intended',
    'pending',
  ]);
});

test('while nothing is on its way, other plans have their turn before the next record', async () => {
  const { api, clock, end, record } = buildScene(6, 2, 1);
  const { look, catchUp, reconcile } = buildReconciler(tableDialect, api, { clock });
  await look();
  await clock.advance(10_000);
  end('w1');
  catchUp();
  const ended: (number | undefined)[] = [];
  // Its own write makes it due again, as in the queue.
  const going = reconcile('plan', { isDue: () => true }).then(({ requeueAfterMs }) =>
    ended.push(requeueAfterMs),
  );
  for (let waited = 0; waited < 500; waited += 50) {
    await clock.advance(50);
    catchUp();
  }
  expect(record()?.targets[0]?.state).toBe('done');
  expect(ended).toEqual([expect.any(Number)]);
  expect(ended[0]).toBeLessThan(1_000);
  await going;
});

test('slots that are not recorded ahead are filled at once, not with the next record', async () => {
  const { api, clock, names, atWork, end, record } = buildScene(18, 6, 3);
  const { look, catchUp, reconcile } = buildReconciler(tableDialect, api, { clock });
  await look();
  for (let turn = 0; turn < 2; turn++) {
    const before = atWork();
    expect(before).toHaveLength(6);
    for (const name of before) end(name);
    catchUp();
    const going = reconcile('plan', { isDue: () => true });
    for (let waited = 0; waited < 400; waited += 50) {
      await clock.advance(50);
      catchUp();
    }
    expect(atWork()).toHaveLength(6);
    await going;
  }
  expect(record()?.targets.map(({ state }) => state)).toEqual(
    names.map((_, at) => (at < 12 ? 'done' : 'intended')),
  );
});

test('the end of the last targets is recorded at once, not with the next record', async () => {
  const { api, clock, end, atWork } = buildScene(6, 3, 3);
  const { look, catchUp, reconcile } = buildReconciler(tableDialect, api, { clock });
  await look();
  for (let wave = 0; wave < 2; wave++) {
    expect(atWork()).toHaveLength(3);
    for (const name of atWork()) end(name);
    catchUp();
    const going = reconcile('plan', { isDue: () => true });
    for (let waited = 0; waited < 400; waited += 50) {
      await clock.advance(50);
      catchUp();
    }
    await going;
  }
  expect(api.read<TablePlan>(tableDialect.plans, 'plan').status?.phase).toBe('done');
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'never more start than there are slots, by two leaders at once (seed %i)',
  async (seed) => {
    const { api, clock, names, atWork, end, record } = buildScene(24, 3, 3);
    const random = seededRandom(seed);
    const most: number[] = [];
    const leaders = [0, 1].map(() => {
      const slow = { ...api.client };
      const replace: KubeClient['replace'] = async (...args) => {
        await new Promise<void>((resolve) => clock.schedule(random() * 400, resolve));
        const written = await api.client.replace(...args);
        most.push(atWork().length);
        return written;
      };
      return buildReconciler(tableDialect, api, { client: { ...slow, replace }, clock });
    });
    const over = new AbortController();
    const lead = async ({ look }: (typeof leaders)[number]): Promise<void> => {
      while (!over.signal.aborted) {
        await look();
        await new Promise<void>((resolve) => clock.schedule(50, resolve));
      }
    };
    const leading = leaders.map(lead);
    for (
      let step = 0;
      step < 4_000 && record()?.targets.every(({ state }) => state === 'done') !== true;
      step++
    ) {
      await clock.advance(20 + random() * 60);
      const working = atWork();
      if (working.length > 0 && random() < 0.7) end(pick(random, working));
      if (random() < 0.6) pick(random, leaders).catchUp();
    }
    over.abort();
    await clock.runUntil(Promise.all(leading));
    expect(record()?.targets.map(({ state }) => state)).toEqual(names.map(() => 'done'));
    expect([2, 3]).toContain(Math.max(...most));
  },
);

test.each([
  ['an abort', { [ABORT_ANNOTATION]: 'true' }, {}],
  ['a pause', {}, { paused: true }],
])('after %s nothing starts ahead', async (_name, annotations, more) => {
  const { api, clock, end, atWork } = buildScene(4, 1, 2);
  const policy = { is: buildPolicy() };
  const { look } = buildReconciler(tableDialect, api, { clock, policyFor: () => policy.is });
  await look();
  end('w1');
  api.change(tableDialect.plans, 'plan', (plan) => annotated(plan, annotations));
  policy.is = buildPolicy(more);
  await clock.runUntil(look());
  await clock.runUntil(look());
  expect(atWork()).toEqual([]);
});

test('a target that a gate holds gives its place to the next one', async () => {
  const { api, clock, end, atWork, record } = buildScene(4, 1, 2);
  const { look } = buildReconciler(tableDialect, api, { clock });
  await look();
  api.put(nodes, buildNode('w2', {}, 'False'));
  end('w1');
  await clock.runUntil(look());
  await clock.runUntil(look());
  expect(atWork()).toEqual(['w3']);
  expect(record()?.next).toEqual(['0/worker/w4']);
});

test('a record that fails ends the reconcile with its error and an Event, after what was sent has its answer', async () => {
  const { api, clock, end, atWork } = buildScene(4, 1, 2);
  const told = vi.fn<Reporter['failed']>();
  const reporter = {
    recorded: vi.fn(),
    sent: vi.fn(),
    decided: vi.fn(),
    failed: told,
  } as unknown as Reporter;
  const { look } = buildReconciler(tableDialect, api, { clock, reporter });
  await look();
  end('w1');
  api.before(RECORD, () => {
    throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no' });
  });
  await expect(clock.runUntil(look())).rejects.toThrow('no');
  expect(atWork()).toEqual(['w2']);
  expect(told.mock.calls.map(([, { code }]) => code)).toEqual(['RecordRefused']);
});

/** One target is started by a Job, which the API server refuses each time. */
function refusedJob(api: MemoryApi, name: string): typeof tableDialect {
  const jobs = { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: false };
  const send: typeof tableDialect.signal.send = (world, rollout, signalling, plan) =>
    signalling.target.name === name
      ? { kind: 'create', resource: jobs, object: { metadata: { name } } }
      : tableDialect.signal.send(world, rollout, signalling, plan);
  const refuse = (): void =>
    api.before(`create jobs/${name}`, () => {
      refuse();
      throw new StatusError({ kind: 'Status', code: 422, reason: 'Invalid', message: 'no' });
    });
  refuse();
  return { ...tableDialect, signal: { ...tableDialect.signal, send } };
}

test('what the API server refuses for good is recorded, however fast others end', async () => {
  const { api, clock, end, atWork, record } = buildScene(12, 2, 3, { failedHoldSlots: true });
  const dialect = refusedJob(api, 'w3');
  const replace: KubeClient['replace'] = async (resource, object, options) => {
    if (resource.plural === 'plans')
      await new Promise<void>((resolve) => clock.schedule(50, resolve));
    return await api.client.replace(resource, object, options);
  };
  const { look } = buildReconciler(dialect, api, { client: { ...api.client, replace }, clock });
  await clock.runUntil(look());
  for (let looks = 0; looks < 3; looks++) {
    for (const name of atWork().slice(0, 1)) end(name);
    await clock.runUntil(look());
  }
  expect(record()?.targets[2]?.state).toBe('unsupported');
});

test('while a refusal is recorded no other record begins', async () => {
  const { api, clock, end, record } = buildScene(9, 3, 3);
  let [isSlow, refusing, begun] = [false, 0, 0];
  const replace: KubeClient['replace'] = async (resource, object, options) => {
    if (resource.plural !== 'plans' || !isSlow)
      return await api.client.replace(resource, object, options);
    if (refusing > 0) begun++;
    const refusals = JSON.stringify(object).includes('unsupported') ? 1 : 0;
    refusing += refusals;
    await new Promise<void>((resolve) => clock.schedule(2_500, resolve));
    return await api.client
      .replace(resource, object, options)
      .finally(() => (refusing -= refusals));
  };
  const { catchUp, look, reconcile } = buildReconciler(refusedJob(api, 'w5'), api, {
    client: { ...api.client, replace },
    clock,
  });
  await clock.runUntil(look());
  await clock.runUntil(look());
  await clock.advance(3_000);
  end('w1');
  catchUp();
  const going = reconcile('plan', { isDue: () => true });
  await clock.advance(50);
  isSlow = true;
  end('w2');
  catchUp();
  for (let steps = 0; steps < 40; steps++) {
    await clock.advance(100);
    if (steps === 12) end('w3');
    catchUp();
    if (record()?.targets[4]?.state === 'unsupported') break;
  }
  expect(record()?.targets[4]?.state).toBe('unsupported');
  expect(begun).toBe(0);
  await clock.runUntil(going);
});

test('a controller that must stop starts nothing more, though targets follow one another', async () => {
  const { api, clock, end, atWork } = buildScene(4, 1, 2);
  const { look, catchUp, reconcile } = buildReconciler(tableDialect, api, { clock });
  await look();
  end('w1');
  catchUp();
  const stop = new AbortController();
  const reconciling = reconcile('plan', { stop: stop.signal });
  await clock.advance(0);
  expect(atWork()).toEqual(['w2']);
  end('w2');
  catchUp();
  stop.abort();
  await clock.runUntil(reconciling);
  expect(atWork()).toEqual([]);
});

test('a failure that is seen together with a success takes its part of the failure budget', () => {
  const states = ['failed', 'intended', 'intended', 'pending'] as const;
  const targets = states.map((state, index) => buildTarget(`w${index + 1}`, state));
  const stage = buildStage('worker', targets, {
    maxInFlight: 2,
    failedHoldSlots: true,
    ahead: 1,
    next: ['0/worker/w4'],
  });
  const snapshot = buildSnapshot(buildRollout([stage]), {
    w2: { observation: failed('no') },
    w3: { observation: succeeded() },
  });
  const started = (maxFailures: number): string[] =>
    signalsOf(evaluationsFor(snapshot, buildPolicy({ maxFailures }), T0)).map(
      ({ target }) => target.name,
    );
  expect([started(1), started(2)]).toEqual([[], ['w4']]);
});
