/**
 * Tests the order in which a process starts and stops its parts, with leadership that is won and
 * lost.
 */
import { expect, test } from 'vitest';
import { FakeClock, settle } from '../../test/support/clock/fake-clock.ts';
import { type Election, NOT_RELEASED } from '../kube/election/election.ts';
import type { Term } from '../kube/election/write-guard.ts';
import { nodes } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import type { Informer } from '../kube/watch/informer.ts';
import { createManager, type Manager, type ManagerOptions, type Runnable } from './manager.ts';
import { createMetrics } from './metrics.ts';

/** Everything that happens, in order. */
type Diary = string[];

function informer(diary: Diary, synced: Promise<void>): Informer {
  let done = false;
  return {
    resource: nodes,
    synced: () => done,
    whenSynced: async (abort?: AbortSignal) => {
      const aborted = new Promise<never>((_resolve, reject) => {
        abort?.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
      });
      await Promise.race([synced, aborted]);
      done = true;
    },
    run: async (abort: AbortSignal) => await untilStopped(diary, 'informer', abort),
  } as unknown as Informer;
}

async function untilStopped(diary: Diary, name: string, abort: AbortSignal): Promise<void> {
  diary.push(`+${name}`);
  await new Promise<void>((resolve) =>
    abort.addEventListener('abort', () => resolve(), { once: true }),
  );
  diary.push(`-${name}`);
}

function runnable(diary: Diary, name: string): Runnable {
  return { name, run: async (abort) => await untilStopped(diary, name, abort) };
}

interface FakeElection extends Pick<Election, keyof Election> {
  change(held: Term | undefined): void;
}

function election(diary: Diary): FakeElection {
  let listener: (held: Term | undefined) => void = () => undefined;
  return {
    identity: 'me',
    name: 'lease',
    leader: () => 'me',
    refusal: () => undefined,
    term: () => undefined,
    beginWrite: () => undefined,
    onChange: (given) => {
      listener = given;
      return () => undefined;
    },
    run: async (abort) => await untilStopped(diary, 'election', abort),
    change: (held) => listener(held),
  };
}

interface Rig {
  readonly diary: Diary;
  readonly clock: FakeClock;
  readonly manager: Manager;
  readonly sync: () => void;
  readonly stop: AbortController;
}

function rig(options: ManagerOptions = {}, diary: Diary = []): Rig {
  const clock = new FakeClock();
  const manager = createManager({ clock, ...options });
  const synced = Promise.withResolvers<void>();
  manager.addInformer(informer(diary, synced.promise));
  return { diary, clock, manager, sync: () => synced.resolve(), stop: new AbortController() };
}

test('caches come first; the end goes the other way round', async () => {
  const { diary, manager, sync, stop } = rig();
  manager.addRunnable(runnable(diary, 'worker'), 'leading');
  manager.addRunnable(runnable(diary, 'server'));
  const running = manager.run(stop.signal);
  await settle();
  expect([diary.join(' '), manager.waitingFor()]).toEqual(['+informer', ['nodes']]);
  sync();
  await settle();
  expect([diary.join(' '), manager.waitingFor()]).toEqual(['+informer +server +worker', []]);
  stop.abort();
  await running;
  expect(diary.slice(3).join(' ')).toBe('-worker -server -informer');
});

test('what is prepared while the caches are read comes before all work, and may add some', async () => {
  const { diary, manager, sync, stop } = rig();
  const loaded = Promise.withResolvers<void>();
  manager.addPreparation(async () => {
    diary.push('preparing');
    await loaded.promise;
    manager.addRunnable(runnable(diary, 'worker'), 'leading');
  });
  const running = manager.run(stop.signal);
  sync();
  await expect.poll(() => diary.join(' ')).toBe('+informer preparing');
  loaded.resolve();
  await expect.poll(() => diary.join(' ')).toBe('+informer preparing +worker');
  stop.abort();
  await running;
});

test('what a preparation starts ends with the caches, also if they are never there', async () => {
  const { diary, manager, stop } = rig();
  manager.addPreparation(async (start) => await Promise.resolve(start(runnable(diary, 'server'))));
  const running = manager.run(stop.signal);
  await expect.poll(() => diary.join(' ')).toBe('+informer +server');
  stop.abort();
  await running;
  expect(diary.join(' ')).toBe('+informer +server -informer -server');
});

test('a preparation that fails ends what runs, and its error is the result', async () => {
  const { diary, manager, stop } = rig();
  manager.addPreparation(async () => await Promise.reject(new Error('no room')));
  await expect(manager.run(stop.signal)).rejects.toThrow('no room');
  expect(diary.join(' ')).toBe('+informer -informer');
});

test('who is stopped before the caches are there starts nothing', async () => {
  const { diary, manager, stop } = rig();
  manager.addRunnable(runnable(diary, 'server'));
  const running = manager.run(stop.signal);
  await settle();
  stop.abort();
  await running;
  expect(diary.join(' ')).toBe('+informer -informer');
});

test('leader-only work comes and goes with the lease, and ends before the lease is released', async () => {
  const diary: Diary = [];
  const lease = election(diary);
  const { manager, sync, stop } = rig({ election: lease }, diary);
  manager.addRunnable(runnable(diary, 'worker'), 'leading');
  sync();
  const running = manager.run(stop.signal);
  await settle();
  expect(diary.join(' ')).toBe('+informer +election');
  for (const term of [{ number: 1 }, undefined, { number: 3 }]) {
    lease.change(term);
    await settle();
  }
  expect(diary.slice(2).join(' ')).toBe('+worker -worker +worker');
  stop.abort();
  await running;
  expect(diary.slice(5).join(' ')).toBe('-worker -election -informer');
});

test('who no longer leads measures no plans: they may end, or go, under another leader', async () => {
  const lease = election([]);
  const metrics = createMetrics();
  const { manager, sync, stop } = rig({ election: lease, metrics });
  const plan = {
    dialect: 'autopilot',
    plan: 'autopilot',
    phases: { failed: 1 },
    targets: {},
    waits: [],
    percent: 0,
  };
  manager.addRunnable(
    { name: 'worker', run: async () => await Promise.resolve(metrics.plan(plan)) },
    'leading',
  );
  const shown = async () => (await metrics.expose()).body.match(/^refit_plans.*/gm);
  sync();
  const running = manager.run(stop.signal);
  await settle();
  lease.change({ number: 1 });
  await settle();
  expect(await shown()).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="failed"} 1',
  ]);
  lease.change(undefined);
  await settle();
  expect(await shown()).toBeNull();
  stop.abort();
  await running;
});

test('a new term waits until the work of the last one has ended', async () => {
  const diary: Diary = [];
  const lease = election(diary);
  const { manager, sync, stop, clock } = rig({ election: lease }, diary);
  const slow: Runnable = {
    name: 'slow',
    run: async (abort) => {
      await untilStopped(diary, 'slow', abort);
      await new Promise<void>((resolve) => void clock.schedule(1_000, resolve));
      diary.push('ended');
    },
  };
  manager.addRunnable(slow, 'leading');
  sync();
  const running = manager.run(stop.signal);
  await settle();
  for (const term of [{ number: 1 }, undefined, { number: 2 }]) lease.change(term);
  await settle();
  expect(diary.slice(2).join(' ')).toBe('+slow -slow');
  await clock.advance(1_000);
  expect(diary.slice(2).join(' ')).toBe('+slow -slow ended +slow');
  stop.abort();
  await clock.runUntil(running);
});

test('a process that is refused its lease is not ready, and says why', () => {
  const refused = new StatusError({ kind: 'Status', code: 403, message: 'leases is forbidden' });
  const { manager } = rig({ election: { ...election([]), refusal: () => refused } });
  expect(manager.waitingFor()).toContain('lease lease (leases is forbidden)');
});

test('if one component fails, the process ends with the error of this component', async () => {
  const { diary, manager, sync, stop } = rig();
  const gate = Promise.withResolvers<void>();
  manager.addRunnable({ name: 'broken', run: async () => await gate.promise });
  manager.addRunnable(runnable(diary, 'server'));
  sync();
  const running = manager.run(stop.signal).catch((thrown: unknown) => thrown);
  await settle();
  gate.reject(new Error('out of order'));
  expect(await running).toMatchObject({ message: 'out of order' });
  expect(diary.join(' ')).toBe('+informer +server -server -informer');
});

test('a part that does not stop is named, and waited for no longer than agreed', async () => {
  const { manager, sync, stop, clock } = rig();
  manager.addRunnable({
    name: 'stubborn',
    run: async () => await new Promise<never>(() => undefined),
  });
  sync();
  const running = manager.run(stop.signal).catch((thrown: unknown) => thrown);
  await settle();
  stop.abort();
  await clock.advance(20_000);
  expect(await running).toMatchObject({
    message: 'these parts did not stop within 20 s: stubborn',
  });
});

test('with work that does not stop, the process stands for election no longer, and gives no lease back', async () => {
  const reasons: unknown[] = [];
  const lease = election([]);
  const run = async (abort: AbortSignal): Promise<void> => {
    await untilStopped([], 'election', abort);
    reasons.push(abort.reason);
  };
  const { manager, sync, stop, clock } = rig({ election: { ...lease, run } });
  manager.addRunnable(
    { name: 'stubborn', run: async () => await new Promise<never>(() => undefined) },
    'leading',
  );
  sync();
  const running = manager.run(stop.signal).catch((thrown: unknown) => thrown);
  await settle();
  lease.change({ number: 1 });
  await settle();
  stop.abort();
  await clock.advance(20_000);
  expect(await running).toMatchObject({
    message: 'these parts did not stop within 20 s: stubborn',
  });
  expect(reasons).toEqual([NOT_RELEASED]);
});

test('a controller brings the informers of its sources', async () => {
  const { diary, manager, sync, stop } = rig();
  const synced = informer(diary, Promise.resolve());
  const source = { informer: synced, start: () => () => undefined };
  manager.addController({
    name: 'c',
    sources: [source, source],
    reconcile: async () => await Promise.resolve(),
    concurrency: 1,
    timeoutMs: 1_000,
  });
  sync();
  const running = manager.run(stop.signal);
  await settle();
  expect(diary).toEqual(['+informer', '+informer']);
  stop.abort();
  await running;
});
