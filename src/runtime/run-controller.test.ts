/**
 * Tests what happens to a key after success, a requeue, an error and a timeout, and how a
 * controller stops.
 */
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { type Metrics, noMetrics, type ReconcileOutcome } from './metrics.ts';
import {
  type Controller,
  type Enqueue,
  type EventSource,
  type ReconcileContext,
  runController,
} from './run-controller.ts';

interface Rig {
  readonly clock: FakeClock;
  readonly enqueue: Enqueue;
  readonly outcomes: ReconcileOutcome[];
  readonly stop: () => void;
  readonly ended: Promise<void>;
}

function start(reconcile: Controller['reconcile'], options: Partial<Controller> = {}): Rig {
  const clock = new FakeClock();
  const outcomes: ReconcileOutcome[] = [];
  let enqueue: Enqueue = () => undefined;
  const source = {
    start: (given: Enqueue) => {
      enqueue = given;
      return () => {
        enqueue = () => undefined;
      };
    },
  } as unknown as EventSource;
  const metrics: Metrics = {
    ...noMetrics,
    reconciled: (_controller, outcome) => outcomes.push(outcome),
  };
  const controller = {
    name: 'test',
    sources: [source],
    reconcile,
    concurrency: 2,
    timeoutMs: 60_000,
    ...options,
  };
  const stopping = new AbortController();
  const ended = runController(controller, stopping.signal, { clock, random: () => 1, metrics });
  onTestFinished(async () => {
    stopping.abort();
    await clock.runUntil(ended);
  });
  return { clock, enqueue: (key) => enqueue(key), outcomes, stop: () => stopping.abort(), ended };
}

test.each<[string, () => object | undefined, ReconcileOutcome[], number]>([
  ['nothing', () => undefined, ['success'], 1],
  ['an empty result', () => ({}), ['success'], 1],
  ['a wish to come back', () => ({ requeueAfterMs: 1_000 }), ['requeue'], 11],
  ['an error', () => fail(new Error('not now')), ['error'], 7],
])('%s', async (_name, act, outcome, times) => {
  const rig = start(async () => await Promise.resolve(act()));
  rig.enqueue('a');
  await rig.clock.advance(0);
  expect(rig.outcomes).toEqual(outcome);
  await rig.clock.advance(10_000);
  expect(rig.outcomes).toHaveLength(times);
});

test('what happens while a key rests is looked at once, after its rest', async () => {
  const rig = start(async () => await Promise.resolve({ restMs: 1_000 }));
  rig.enqueue('a');
  await rig.clock.advance(0);
  for (let turn = 0; turn < 9; turn++) {
    rig.enqueue('a');
    await rig.clock.advance(100);
  }
  expect(rig.outcomes).toEqual(['success']);
  await rig.clock.advance(100);
  expect(rig.outcomes).toEqual(['success', 'success']);
});

function fail(error: Error): never {
  throw error;
}

test('a reconcile that throws at once, without a promise, is contained too', async () => {
  const rig = start(() => fail(new Error('no promise')));
  rig.enqueue('a');
  await rig.clock.advance(0);
  expect(rig.outcomes).toEqual(['error']);
});

test('Refit retries a failed reconcile until it succeeds', async () => {
  let failures = 0;
  const rig = start(async () => {
    if (failures++ < 2) throw new Error('not yet');
    await Promise.resolve();
  });
  rig.enqueue('a');
  await rig.clock.advance(1_000);
  rig.enqueue('a');
  await rig.clock.advance(0);
  expect(rig.outcomes).toEqual(['error', 'error', 'success', 'success']);
});

test('as many keys as workers, and no key twice', async () => {
  const running = new Set<string>();
  const most = { count: 0 };
  const gate = Promise.withResolvers<void>();
  const rig = start(async (key) => {
    expect(running.has(key)).toBe(false);
    running.add(key);
    most.count = Math.max(most.count, running.size);
    await gate.promise;
    running.delete(key);
  });
  for (const key of ['a', 'a', 'b', 'c', 'a']) rig.enqueue(key);
  await rig.clock.advance(0);
  rig.enqueue('a');
  expect([...running]).toEqual(['a', 'b']);
  gate.resolve();
  await rig.clock.advance(0);
  expect(most.count).toBe(2);
  expect(rig.outcomes).toHaveLength(4);
});

test('when its time is over a reconcile is told, and its key waits for its end', async () => {
  let context: ReconcileContext | undefined;
  const gate = Promise.withResolvers<void>();
  const rig = start(async (_key, given) => {
    context ??= given;
    await gate.promise;
  });
  rig.enqueue('a');
  await rig.clock.advance(59_999);
  expect(context?.abort.aborted).toBe(false);
  await rig.clock.advance(1);
  expect(context?.abort.reason).toMatchObject({ message: 'reconcile took longer than 1 min' });
  rig.enqueue('a');
  await rig.clock.advance(0);
  expect(rig.outcomes).toEqual([]);
  gate.resolve();
  await rig.clock.advance(0);
  expect(rig.outcomes).toEqual(['success', 'success']);
});

test('stopping drops what waits, lets what is at work end, and tells it after a while', async () => {
  const begun: string[] = [];
  const rig = start(
    async (key, { abort }) => {
      begun.push(key);
      await new Promise<void>((resolve) =>
        abort.addEventListener('abort', () => resolve(), { once: true }),
      );
    },
    { concurrency: 1 },
  );
  rig.enqueue('a');
  rig.enqueue('b');
  await rig.clock.advance(0);
  rig.stop();
  rig.enqueue('c');
  await rig.clock.advance(4_999);
  expect(rig.outcomes).toEqual([]);
  await rig.clock.advance(1);
  await rig.ended;
  expect([begun, rig.outcomes]).toEqual([['a'], ['success']]);
});

test('a key that was handed out in the moment of the end is told as well', async () => {
  const rig = start(async (_key, { abort }) => {
    await new Promise<void>((resolve) =>
      abort.addEventListener('abort', () => resolve(), { once: true }),
    );
  });
  await rig.clock.advance(0);
  rig.enqueue('a');
  rig.stop();
  await rig.clock.advance(5_000);
  expect(rig.outcomes).toEqual(['success']);
});
