/** Tests that the health monitor runs its checks in the background, shares answers, and never hangs. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { CheckFinding, DaemonSetCheck } from './checks.ts';
import { type AskCheck, createHealthMonitor, type HealthMonitor } from './monitor.ts';

const GOOD: CheckFinding = { state: 'passing', message: 'all is well' };
const BAD: CheckFinding = { state: 'failing', message: 'a pod is not Ready' };

function check(name: string): DaemonSetCheck {
  return { kind: 'daemonSets', name, pods: 'all' };
}

interface Rig extends Disposable {
  readonly clock: FakeClock;
  readonly monitor: HealthMonitor;
  readonly asked: string[];
  readonly changes: () => number;
  follow(plan: string, names: readonly string[], nodes?: readonly string[], after?: number): void;
}

function rig(answer: (name: string) => Promise<CheckFinding>): Rig {
  const clock = new FakeClock();
  const asked: string[] = [];
  const ask: AskCheck = async ({ name }, nodes) => {
    asked.push([name, ...nodes].join(' '));
    return await answer(name);
  };
  const monitor = createHealthMonitor(clock, ask);
  const stop = new AbortController();
  let changes = 0;
  monitor.onChange(() => changes++);
  void monitor.run(stop.signal);
  return {
    clock,
    monitor,
    asked,
    changes: () => changes,
    follow: (plan, names, nodes = [], after = 0) =>
      monitor.follow(plan, { policy: 'p', checks: names.map(check), nodes, after }),
    [Symbol.dispose]: () => stop.abort(),
  };
}

test('a check is asked at once and then every 15 s, and only a change of its state is told', async () => {
  let found = GOOD;
  using scene = rig(async () => await Promise.resolve(found));
  scene.follow('a', ['one']);
  expect(scene.monitor.resultsOf('a')).toEqual([]);
  await scene.clock.advance(0);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ name: 'one', ...GOOD }]);
  expect(scene.changes()).toBe(1);
  const since = scene.monitor.resultsOf('a')[0]?.since ?? 0;
  await scene.clock.advance(15_000);
  expect(scene.asked).toHaveLength(2);
  expect(scene.changes()).toBe(1);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ since, at: since + 15_000 }]);
  found = BAD;
  await scene.clock.advance(15_000);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ ...BAD, since: since + 30_000 }]);
  expect(scene.changes()).toBe(2);
});

test('plans under one policy share one round, which knows the nodes of both', async () => {
  using scene = rig(async () => await Promise.resolve(GOOD));
  scene.follow('a', ['one'], ['w1']);
  scene.follow('b', ['one'], ['w2']);
  await scene.clock.advance(0);
  expect(scene.asked).toEqual(['one w1 w2']);
  expect(scene.monitor.resultsOf('b')).toEqual(scene.monitor.resultsOf('a'));
});

test('an answer that is needed for a later moment is fetched at once', async () => {
  using scene = rig(async () => await Promise.resolve(GOOD));
  scene.follow('a', ['one']);
  await scene.clock.advance(5_000);
  scene.follow('a', ['one'], [], scene.clock.now());
  await scene.clock.advance(0);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ at: scene.clock.now() }]);
  expect(scene.changes()).toBe(2);
});

test('a check that never answers is unknown after 10 s and is asked again; a rejection is unknown', async () => {
  using scene = rig(async (name) =>
    name === 'dead'
      ? await new Promise(() => undefined)
      : await Promise.reject(new Error('no\u001B[1m way')),
  );
  scene.follow('a', ['dead', 'broken']);
  await scene.clock.advance(10_000);
  expect(scene.monitor.resultsOf('a')).toMatchObject([
    { name: 'dead', state: 'unknown', message: 'there was no answer within 10 s' },
    { name: 'broken', state: 'unknown', message: 'no\uFFFD[1m way' },
  ]);
  await scene.clock.advance(15_000);
  expect(scene.asked.filter((each) => each === 'dead')).toHaveLength(2);
});

test('at most four checks are asked at once', async () => {
  using scene = rig(async () => await new Promise(() => undefined));
  scene.follow('a', ['1', '2', '3', '4', '5']);
  await scene.clock.advance(0);
  expect(scene.asked).toHaveLength(4);
  await scene.clock.advance(10_000);
  expect(scene.asked).toHaveLength(5);
});

test('a plan that is forgotten is asked about no more, and a stopped monitor knows nothing', async () => {
  const scene = rig(async () => await Promise.resolve(GOOD));
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene.monitor.forget('a');
  await scene.clock.advance(60_000);
  expect(scene.asked).toHaveLength(1);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene[Symbol.dispose]();
  await scene.clock.advance(0);
  expect(scene.monitor.resultsOf('a')).toEqual([]);
});

test('an answer as of an earlier time is asked for again at the usual pace only', async () => {
  let at = 0;
  using scene = rig(async () => await Promise.resolve({ ...GOOD, at }));
  at = scene.clock.now() - 60_000;
  scene.follow('a', ['one'], [], at);
  await scene.clock.advance(14_000);
  expect(scene.asked).toHaveLength(1);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ at }]);
  await scene.clock.advance(1_000);
  expect(scene.asked).toHaveLength(2);
});
