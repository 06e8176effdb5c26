/**
 * Tests that the runner of hooks works in the background, continues after errors, enforces deadlines, and forgets runs
 * that nobody needs.
 */
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import type { HookFinding, HookRun } from './rules.ts';
import { createHookRunner, type HookRunner } from './runner.ts';

const MINUTE = 60_000;
const RUNS: HookFinding = { state: 'running', message: 'it runs' };
const GOOD: HookFinding = { state: 'succeeded', message: 'it is complete' };

function run(id: string): HookRun {
  const template = { spec: {} };
  const action = { kind: 'job', namespace: 'n', template, pinToNode: false, retries: 0 } as const;
  const hook = { name: 'backup', when: 'beforeDrain', action, timeoutMs: MINUTE } as const;
  return { id, hook, node: 'w1', variables: {} };
}

function webhookRun(id: string): HookRun {
  const action = { kind: 'webhook', url: 'https://hooks.example', secretName: 's' } as const;
  const hook = { name: 'tell', when: 'beforeDrain', action, timeoutMs: MINUTE } as const;
  return { id, hook, node: 'w1', variables: {} };
}

interface Rig extends Disposable {
  readonly clock: FakeClock;
  readonly runner: HookRunner;
  readonly looks: string[];
  readonly changes: () => number;
}

function rig(look: (id: string) => Promise<HookFinding>): Rig {
  const clock = new FakeClock();
  const looks: string[] = [];
  const stop = new AbortController();
  const runner = createHookRunner(clock, async ({ id }) => {
    looks.push(id);
    return await look(id);
  });
  let changes = 0;
  runner.onChange(() => changes++);
  void runner.run(stop.signal);
  return {
    clock,
    runner,
    looks,
    changes: () => changes,
    [Symbol.dispose]: () => stop.abort(),
  };
}

test('a due run is looked at until it is over, and every change is told once', async () => {
  let found = RUNS;
  using scene = rig(async () => await Promise.resolve(found));
  scene.runner.follow('p', [run('a')], ['a']);
  await scene.clock.advance(0);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', ...RUNS }]);
  scene.runner.follow('p', [run('a')], ['a']);
  await scene.clock.advance(3_000);
  expect([scene.looks.length, scene.changes()]).toEqual([2, 1]);
  found = GOOD;
  await scene.clock.advance(3_000);
  scene.runner.follow('p', [], ['a']);
  await scene.clock.advance(MINUTE);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', ...GOOD }]);
  expect([scene.looks.length, scene.changes()]).toEqual([3, 2]);
});

test('an error and a look without an answer are said, and the run goes on until its deadline', async () => {
  using scene = rig(async (id) =>
    id === 'dead'
      ? await new Promise(() => undefined)
      : await Promise.reject(new Error('forbid\u001B[1mden')),
  );
  scene.runner.follow('p', [run('dead'), run('broken')], []);
  await scene.clock.advance(15_000);
  expect(scene.runner.resultsOf('p')).toMatchObject([
    { id: 'dead', state: 'running', message: 'there was no answer within 15 s' },
    { id: 'broken', state: 'running', message: 'forbid\uFFFD[1mden' },
  ]);
  for (let seconds = 0; seconds < 120; seconds += 3) await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).toMatchObject([
    { id: 'dead', state: 'failed' },
    { id: 'broken', state: 'failed', message: 'it did not end within 1 min: forbid\uFFFD[1mden' },
  ]);
});

test('a run that is not due any more is not looked at, and what nobody keeps is forgotten', async () => {
  using scene = rig(async () => await Promise.resolve(RUNS));
  scene.runner.follow('p', [run('a'), run('b')], ['a', 'b']);
  scene.runner.follow('q', [run('c')], ['c']);
  await scene.clock.advance(0);
  scene.runner.follow('p', [], ['a']);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a' }]);
  await scene.clock.advance(3_000);
  expect(scene.looks).toEqual(['a', 'b', 'c', 'c']);
  scene.runner.forget('p');
  expect(scene.runner.resultsOf('p')).toEqual([]);
  expect(scene.runner.resultsOf('q')).toMatchObject([{ id: 'c' }]);
});

test('a failure is known for as long as its target has ended, and a success is not', async () => {
  using scene = rig(
    async (id) => await Promise.resolve(id === 'a' ? { state: 'failed', message: 'no' } : GOOD),
  );
  scene.runner.follow('p', [run('a'), run('b')], []);
  await scene.clock.advance(0);
  scene.runner.follow('p', [], [], ['w1']);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', hook: 'backup', target: 'w1' }]);
  scene.runner.follow('p', [], [], ['w2']);
  expect(scene.runner.resultsOf('p')).toEqual([]);
});

test('a stopped runner knows nothing and looks at nothing', async () => {
  const scene = rig(async () => await Promise.resolve(RUNS));
  scene.runner.follow('p', [run('a')], []);
  await scene.clock.advance(0);
  scene[Symbol.dispose]();
  await scene.clock.advance(MINUTE);
  expect([scene.runner.resultsOf('p'), scene.looks]).toEqual([[], ['a']]);
});

/** Returns the seconds at which a leader that starts now sends the request, and the key of each request. */
async function requestsTo(timeoutMs: number, answer: HookFinding): Promise<[number, string][]> {
  const asked: [number, string][] = [];
  using scene: Rig = rig(async (id) => {
    asked.push([scene.clock.monotonic() / 1000, id]);
    return await Promise.resolve(answer);
  });
  const run = webhookRun('a');
  scene.runner.follow('p', [{ ...run, hook: { ...run.hook, timeoutMs } }], ['a']);
  for (let seconds = 0; seconds <= 600; seconds++) await scene.clock.advance(1_000);
  const state = answer.state === 'running' ? 'failed' : answer.state;
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', state }]);
  return asked;
}

test('a server that fails is asked less and less often, by every leader with the same key, and last at the deadline', async () => {
  const down: HookFinding = { state: 'running', message: 'it answered 503' };
  const expected = [0, 3, 9, 21, 45, 60].map((second) => [second, 'a']);
  expect(await requestsTo(MINUTE, down)).toEqual(expected);
  expect(await requestsTo(MINUTE, down)).toEqual(expected);
  const patient = await requestsTo(4 * MINUTE, down);
  expect(patient.map(([second]) => second)).toEqual([0, 3, 9, 21, 45, 93, 153, 213, 240]);
});

test.each<HookFinding>([GOOD, { state: 'failed', message: 'it answered 422' }])(
  'a server whose answer means $state is asked once',
  async (answer) => expect(await requestsTo(MINUTE, answer)).toEqual([[0, 'a']]),
);

test.each<['job' | 'webhook', (id: string) => HookRun]>([
  ['job', run],
  ['webhook', webhookRun],
])(
  'a hook of the kind %s that somebody corrects while it runs is carried out as it is now, at once',
  async (_kind, made) => {
    const clock = new FakeClock();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const seen: number[] = [];
    const runner = createHookRunner(clock, async ({ hook }) => {
      seen.push(hook.timeoutMs);
      return await Promise.resolve(RUNS);
    });
    void runner.run(stop.signal);
    const wrong = made('a');
    runner.follow('p', [wrong], []);
    await clock.advance(0);
    runner.follow('p', [{ ...wrong, hook: { ...wrong.hook, timeoutMs: 2 * MINUTE } }], []);
    await clock.advance(0);
    expect(seen).toEqual([MINUTE, 2 * MINUTE]);
    for (let seconds = 0; seconds < 180; seconds += 3) await clock.advance(3_000);
    expect(runner.resultsOf('p')).toMatchObject([
      { state: 'failed', message: 'it did not end within 2 min: it runs' },
    ]);
  },
);

/** Returns the run with another URL or another timeout. */
function edited(
  of: HookRun,
  change: { readonly url?: string; readonly timeoutMs?: number },
): HookRun {
  const { url, ...rest } = change;
  const action = { ...of.hook.action, ...(url !== undefined && { url }) };
  return { ...of, hook: { ...of.hook, ...rest, action } };
}

test('the answer to a request that was sent before its hook was edited does not count', async () => {
  const first = Promise.withResolvers<HookFinding>();
  const answers = [first.promise, Promise.resolve(GOOD)];
  using scene = rig(async () => await (answers.shift() ?? Promise.resolve(RUNS)));
  scene.runner.follow('p', [webhookRun('a')], []);
  await scene.clock.advance(0);
  scene.runner.follow('p', [edited(webhookRun('a'), { url: 'https://right.example' })], []);
  await scene.clock.advance(0);
  expect(scene.looks).toEqual(['a']);
  first.resolve({ state: 'failed', message: 'it answered 404' });
  await scene.clock.advance(0);
  expect(scene.looks).toEqual(['a', 'a']);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', ...GOOD }]);
  expect(scene.changes()).toBe(1);
});

test('a hook that is edited in a long pause is carried out at once, and then after the pauses of a new hook', async () => {
  using scene = rig(async () => await Promise.resolve(RUNS));
  const slow = edited(webhookRun('a'), { timeoutMs: 10 * MINUTE });
  scene.runner.follow('p', [slow], []);
  for (let seconds = 0; seconds < 50; seconds++) await scene.clock.advance(1_000);
  const before = scene.looks.length;
  const corrected = edited(slow, { url: 'https://right.example' });
  scene.runner.follow('p', [corrected], []);
  await scene.clock.advance(0);
  expect(scene.looks).toHaveLength(before + 1);
  scene.runner.follow('p', [structuredClone(corrected)], []);
  await scene.clock.advance(2_000);
  expect(scene.looks).toHaveLength(before + 1);
  await scene.clock.advance(1_000);
  expect(scene.looks).toHaveLength(before + 2);
});

test('a run whose timeout is shortened to less than it has taken fails at once', async () => {
  using scene = rig(async () => await Promise.resolve(RUNS));
  const slow = edited(webhookRun('a'), { timeoutMs: 10 * MINUTE });
  scene.runner.follow('p', [slow], []);
  for (let seconds = 0; seconds < 100; seconds++) await scene.clock.advance(1_000);
  scene.runner.follow('p', [edited(slow, { timeoutMs: MINUTE })], []);
  await scene.clock.advance(0);
  expect(scene.runner.resultsOf('p')).toMatchObject([
    { state: 'failed', message: 'it did not end within 1 min: it runs' },
  ]);
});

test('a server that never answers fails the run, which says so', async () => {
  using scene = rig(async () => await new Promise(() => undefined));
  scene.runner.follow('p', [webhookRun('a')], ['a']);
  for (let seconds = 0; seconds <= 75; seconds++) await scene.clock.advance(1_000);
  const message = 'it did not end within 1 min: there was no answer within 15 s';
  expect(scene.runner.resultsOf('p')).toMatchObject([{ id: 'a', state: 'failed', message }]);
});

test('runs that are followed before this process leads are looked at as soon as it leads', async () => {
  const clock = new FakeClock();
  const looks: string[] = [];
  const runner = createHookRunner(clock, async ({ id }) => {
    looks.push(id);
    return await Promise.resolve(RUNS);
  });
  runner.follow('p', [run('a')], ['a']);
  await clock.advance(MINUTE);
  expect(looks).toEqual([]);
  const stop = new AbortController();
  void runner.run(stop.signal);
  await clock.advance(0);
  expect(looks).toEqual(['a']);
  stop.abort();
});

test('a run that is forgotten while it is looked at has no result, and nobody is told', async () => {
  const answer = Promise.withResolvers<HookFinding>();
  using scene = rig(async () => await answer.promise);
  scene.runner.follow('p', [run('a')], ['a']);
  await scene.clock.advance(0);
  scene.runner.forget('p');
  answer.resolve(GOOD);
  await scene.clock.advance(MINUTE);
  expect([scene.runner.resultsOf('p'), scene.changes(), scene.looks]).toEqual([[], 0, ['a']]);
});

test('a run is looked at only once at a time, however often it is followed', async () => {
  const answer = Promise.withResolvers<HookFinding>();
  using scene = rig(async () => await answer.promise);
  for (let round = 0; round < 3; round++) {
    scene.runner.follow('p', [run('a')], ['a']);
    await scene.clock.advance(0);
  }
  expect(scene.looks).toEqual(['a']);
  answer.resolve(RUNS);
  await scene.clock.advance(3_000);
  expect(scene.looks).toEqual(['a', 'a']);
});

test('a run that is not due while it waits for its turn is not looked at', async () => {
  const answers = Promise.withResolvers<HookFinding>();
  using scene = rig(async () => await answers.promise);
  const many = Array.from({ length: 9 }, (_, index) => run(`r${index}`));
  scene.runner.follow('p', many, []);
  await scene.clock.advance(0);
  expect(scene.looks).toHaveLength(8);
  scene.runner.follow('p', many.slice(0, 8), []);
  answers.resolve(RUNS);
  await scene.clock.advance(0);
  expect(scene.looks).toHaveLength(8);
});

test('a message is one of at most 300 characters', async () => {
  using scene = rig(async () => await Promise.resolve({ ...RUNS, message: 'x'.repeat(400) }));
  scene.runner.follow('p', [run('a')], ['a']);
  await scene.clock.advance(0);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ message: 'x'.repeat(300) }]);
});

test('a result has the time of its state, not of its newest message, and names the target', async () => {
  let message = 'it starts';
  using scene = rig(async () => await Promise.resolve({ state: 'running', message }));
  const begin = scene.clock.now();
  scene.runner.follow('p', [{ ...run('a'), variables: { REFIT_TARGET: 'worker1' } }], ['a']);
  await scene.clock.advance(0);
  message = 'it goes on';
  await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).toMatchObject([
    { id: 'a', target: 'worker1', message: 'it goes on', since: begin },
  ]);
});

test('the list of results is the same until a result changes', async () => {
  let message = 'it starts';
  using scene = rig(async () => await Promise.resolve({ state: 'running', message }));
  scene.runner.follow('p', [run('a')], ['a']);
  await scene.clock.advance(0);
  const list = scene.runner.resultsOf('p');
  await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).toBe(list);
  message = 'it goes on';
  await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).not.toBe(list);
});

test('a Job fails 30 s after its deadline, because its own message says more', async () => {
  using scene = rig(async () => await Promise.resolve(RUNS));
  scene.runner.follow('p', [run('a')], ['a']);
  for (let seconds = 0; seconds < 87; seconds += 3) await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ state: 'running' }]);
  await scene.clock.advance(3_000);
  expect(scene.runner.resultsOf('p')).toMatchObject([{ state: 'failed' }]);
});
