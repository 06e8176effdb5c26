/** Tests that the health monitor runs its checks in the background, shares answers, and never hangs. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { CheckFinding, DaemonSetCheck } from './checks.ts';
import { type AskCheck, createHealthMonitor, type HealthMonitor, type Need } from './monitor.ts';

const GOOD: CheckFinding = { state: 'passing', message: 'all is well' };
const BAD: CheckFinding = { state: 'failing', message: 'a pod is not Ready' };

function check(name: string): DaemonSetCheck {
  return { kind: 'daemonSets', name, pods: 'all' };
}

interface Rig extends Disposable {
  readonly clock: FakeClock;
  readonly monitor: HealthMonitor;
  readonly asked: string[];
  readonly needs: Need[];
  readonly changes: () => number;
  follow(
    plan: string,
    names: readonly string[],
    nodes?: readonly string[],
    after?: number,
    policy?: string,
  ): void;
  run(): Promise<void>;
}

/** A monitor that runs already. */
function rig(answer: (name: string) => Promise<CheckFinding>): Rig {
  const idle = idleRig(answer);
  void idle.run();
  return idle;
}

function idleRig(answer: (name: string) => Promise<CheckFinding>): Rig {
  const clock = new FakeClock();
  const asked: string[] = [];
  const needs: Need[] = [];
  const ask: AskCheck = async ({ name }, nodes, _abort, need) => {
    asked.push([name, ...nodes].join(' '));
    needs.push(need);
    return await answer(name);
  };
  const monitor = createHealthMonitor(clock, ask);
  let stop = new AbortController();
  let changes = 0;
  monitor.onChange(() => changes++);
  return {
    clock,
    monitor,
    asked,
    needs,
    changes: () => changes,
    follow: (plan, names, nodes = [], after = 0, policy = 'p') =>
      monitor.follow(plan, { policy, checks: names.map(check), nodes, after }),
    run: async () => {
      stop = new AbortController();
      await monitor.run(stop.signal);
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}

const good = async () => await Promise.resolve(GOOD);

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

test('after the clock was set back, an answer of before does not count, and the check is asked again at once', async () => {
  using scene = rig(good);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene.clock.setBack(3_600_000);
  const upgradedAt = scene.clock.now();
  expect(scene.monitor.resultsOf('a')[0]?.at).toBeLessThan(upgradedAt);
  scene.follow('a', ['one'], ['w1'], upgradedAt);
  await scene.clock.advance(0);
  expect(scene.asked).toEqual(['one', 'one w1']);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ ...GOOD, at: upgradedAt }]);
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
  expect(scene.changes()).toBe(1);
});

test('a check that a plan followed before the monitor runs is asked as soon as it runs', async () => {
  using scene = idleRig(good);
  scene.follow('a', ['one']);
  await scene.clock.advance(60_000);
  expect(scene.asked).toEqual([]);
  void scene.run();
  await scene.clock.advance(0);
  expect(scene.asked).toEqual(['one']);
});

test('a monitor that runs again knows nothing of its last run', async () => {
  using scene = rig(good);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene[Symbol.dispose]();
  await scene.clock.advance(60_000);
  expect(scene.asked).toHaveLength(1);
  void scene.run();
  scene.follow('a', ['one']);
  expect(scene.monitor.resultsOf('a')).toEqual([]);
  await scene.clock.advance(0);
  expect(scene.asked).toHaveLength(2);
});

test('plans under different policies have results of their own, also of the same check', async () => {
  using scene = rig(good);
  const after = scene.clock.now();
  scene.follow('a', ['one'], ['w1'], after);
  scene.follow('b', ['one'], ['w2'], 0, 'q');
  await scene.clock.advance(0);
  expect(scene.asked).toEqual(['one w1', 'one w2']);
  expect(scene.needs).toEqual([
    { policy: 'p', after, now: after },
    { policy: 'q', after: 0, now: after },
  ]);
});

test('a check that no plan has any more is asked no more, and the results of other checks stay', async () => {
  using scene = rig(good);
  scene.follow('a', ['one', 'two']);
  scene.follow('b', ['three']);
  await scene.clock.advance(0);
  scene.follow('a', ['two']);
  await scene.clock.advance(15_000);
  expect(scene.asked.slice(3).toSorted()).toEqual(['three', 'two']);
  scene.monitor.forget('b');
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ name: 'two', ...GOOD }]);
  expect(scene.monitor.resultsOf('b')).toEqual([]);
  await scene.clock.advance(15_000);
  expect(scene.asked.slice(5)).toEqual(['two']);
});

test('a plan that is followed again after it was forgotten waits for a new answer', async () => {
  using scene = rig(good);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene.monitor.forget('a');
  scene.follow('a', ['one']);
  expect(scene.monitor.resultsOf('a')).toEqual([]);
  await scene.clock.advance(0);
  expect(scene.asked).toHaveLength(2);
});

test('a plan that is followed again and again is asked about no more often than every 15 s', async () => {
  using scene = rig(good);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  for (let second = 1; second < 15; second++) {
    await scene.clock.advance(1_000);
    scene.follow('a', ['one']);
  }
  expect(scene.asked).toHaveLength(1);
  await scene.clock.advance(1_000);
  expect(scene.asked).toHaveLength(2);
});

test('while a check is asked, nothing asks it a second time', async () => {
  using scene = rig(async () => await new Promise(() => undefined));
  scene.follow('a', ['one']);
  await scene.clock.advance(1_000);
  scene.follow('b', ['one'], ['w2'], scene.clock.now());
  await scene.clock.advance(8_000);
  expect(scene.asked).toEqual(['one']);
  await scene.clock.advance(1_000);
  expect(scene.asked).toEqual(['one', 'one w2']);
});

test('a plan may be forgotten while its check is asked, which is then the last time', async () => {
  using scene = rig(async () => await new Promise(() => undefined));
  scene.follow('a', ['one']);
  await scene.clock.advance(1_000);
  scene.monitor.forget('a');
  await scene.clock.advance(60_000);
  expect(scene.asked).toEqual(['one']);
});

test('an answer that arrives after the monitor has stopped is not told', async () => {
  const answered = Promise.withResolvers<CheckFinding>();
  using scene = rig(async () => await answered.promise);
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  scene[Symbol.dispose]();
  answered.resolve(BAD);
  await scene.clock.advance(0);
  expect(scene.asked).toEqual(['one']);
  expect(scene.changes()).toBe(0);
});

test('an answer that is still too old for every plan is not told again', async () => {
  using scene = rig(async () => await Promise.resolve({ ...GOOD, at: 1 }));
  scene.follow('a', ['one'], [], 2);
  await scene.clock.advance(30_000);
  expect(scene.asked).toHaveLength(3);
  expect(scene.changes()).toBe(1);
});

test('a message has at most 300 characters', async () => {
  using scene = rig(async () => await Promise.resolve({ ...BAD, message: 'x'.repeat(301) }));
  scene.follow('a', ['one']);
  await scene.clock.advance(0);
  expect(scene.monitor.resultsOf('a')).toMatchObject([{ message: 'x'.repeat(300) }]);
});
