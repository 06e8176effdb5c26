/**
 * Tests that the keeper creates, renews and ends silences in the background, and that an unreachable server delays
 * nothing else.
 */
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { createSilenceKeeper, type SilenceKeeper } from './keeper.ts';
import type { Made, SilenceRule, Wanted } from './silence.ts';

const URL = 'http://am';

interface Rig extends Disposable {
  readonly clock: FakeClock;
  readonly keeper: SilenceKeeper;
  /** Returns the requests that the server got since the last call, and forgets them. */
  readonly asked: () => string[];
  readonly changes: () => number;
  readonly stop: () => void;
  /** Returns the samples of the metrics of silences. */
  readonly measured: () => Promise<string[]>;
  follow(nodes: readonly string[], urls?: readonly string[], lastsMs?: number): void;
}

type Answer = (wanted: Wanted) => Promise<Made | undefined>;

function rig(answer: Answer = async () => await Promise.resolve(undefined)): Rig {
  const clock = new FakeClock();
  let asked: string[] = [];
  const note = (what: string) => async (wanted: Wanted) => {
    asked.push(`${what} ${wanted.matchers[0]?.value}`);
    return await answer(wanted);
  };
  const end = async (wanted: Wanted) => void (await note('end')(wanted));
  const metrics = createMetrics();
  const keeper = createSilenceKeeper(clock, { keep: note('keep'), end }, metrics);
  const stop = new AbortController();
  let changes = 0;
  keeper.onChange(() => changes++);
  void keeper.run(stop.signal);
  return {
    clock,
    keeper,
    asked: () => {
      const taken = asked;
      asked = [];
      return taken;
    },
    changes: () => changes,
    stop: () => stop.abort(),
    measured: async () =>
      (await metrics.expose()).body.split('\n').filter((line) => line.startsWith('refit_silence')),
    follow: (nodes, urls = [URL], lastsMs = 300_000) => {
      const matchers = [{ name: 'node', value: '{node}', isRegex: false }];
      const rules = urls.map((url): SilenceRule => ({ name: 'nodes', url, matchers, lastsMs }));
      keeper.follow('toy/a', { policy: 'p', rules, uid: 'u', nodes });
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}

test('a silence is made at once, renewed while its node is in progress, and then ended', async () => {
  using scene = rig();
  scene.follow(['w1']);
  await scene.clock.advance(0);
  expect(scene.asked()).toEqual(['keep w1']);
  expect(scene.keeper.stateOf('toy/a')).toMatchObject({ isGood: true });
  scene.follow(['w1']);
  await scene.clock.advance(99_000);
  expect(scene.asked()).toEqual([]);
  await scene.clock.advance(1_000);
  expect(scene.asked()).toEqual(['keep w1']);
  scene.follow(['w2']);
  await scene.clock.advance(0);
  expect(scene.asked().toSorted()).toEqual(['end w1', 'keep w2']);
  scene.keeper.forget('toy/a');
  await scene.clock.advance(0);
  expect(scene.asked()).toEqual(['end w2']);
  await scene.clock.advance(3_600_000);
  expect(scene.asked()).toEqual([]);
  expect(scene.keeper.stateOf('toy/a')).toBeUndefined();
});

test('a leader that ends its term ends no silence, and renews none', async () => {
  using scene = rig();
  scene.follow(['w1']);
  await scene.clock.advance(0);
  scene.asked();
  scene.stop();
  await scene.clock.advance(3_600_000);
  expect(scene.asked()).toEqual([]);
});

test('another duration changes the silence; it does not end it', async () => {
  using scene = rig();
  scene.follow(['w1']);
  await scene.clock.advance(0);
  scene.follow(['w1'], [URL], 60_000);
  await scene.clock.advance(300_000);
  expect(new Set(scene.asked())).toEqual(new Set(['keep w1']));
});

test('a server that is gone is told once, is asked a bounded number of times, and delays no other', async () => {
  let isGone = true;
  using scene = rig(async ({ rule }) => {
    if (isGone && rule.url === URL) throw new Error('no answer from am');
    return await Promise.resolve(undefined);
  });
  const nodes = ['w1', 'w2', 'w3', 'w4', 'w5'];
  scene.follow(nodes, [URL, 'http://other']);
  await scene.clock.advance(0);
  // Three failed requests to the server that is gone, and five requests to the other server.
  expect(scene.asked()).toHaveLength(8);
  expect(scene.keeper.stateOf('toy/a')).toEqual({
    isGood: false,
    message: 'silence nodes of UpgradePolicy p: no answer from am',
  });
  await scene.clock.advance(15_000);
  expect(new Set(scene.asked())).toEqual(new Set(['keep w4', 'keep w5', 'keep w1']));
  // By now, the requests for all nodes have failed once.
  const told = scene.changes();
  await scene.clock.advance(60_000);
  expect(scene.changes()).toBe(told);
  isGone = false;
  await scene.clock.advance(60_000);
  expect(scene.keeper.stateOf('toy/a')).toMatchObject({ isGood: true });
});

test('a server that never answers is given up after 10 s, and a silence that cannot be ended ends by itself', async () => {
  using scene = rig(async () => await new Promise(() => undefined));
  scene.follow(['w1']);
  await scene.clock.advance(10_000);
  expect(scene.keeper.stateOf('toy/a')).toMatchObject({
    message: 'silence nodes of UpgradePolicy p: there was no answer within 10 s',
  });
  scene.keeper.forget('toy/a');
  await scene.clock.advance(3_600_000);
  expect(scene.asked()).toEqual(['keep w1', 'end w1', 'end w1', 'end w1', 'end w1']);
});

/** Answers as Alertmanager does: the silence keeps its id and its start, and ends 300 s after each renewal. */
function answering(clock: () => FakeClock, isGone: (wanted: Wanted) => boolean): Answer {
  return async (wanted) => {
    if (isGone(wanted)) throw new Error('no answer from am');
    const endsAt = new Date(clock().now() + 300_000).toISOString();
    return await Promise.resolve({ id: `id-${wanted.node}`, startsAt: 'start', endsAt });
  };
}

test('each node has its own silence and problem, and no renewal is told', async () => {
  using scene: Rig = rig(
    answering(
      () => scene.clock,
      ({ node }) => node === 'w2',
    ),
  );
  scene.follow(['w1', 'w2']);
  const untried = { silence: 'nodes', server: 'am', lastsMs: 300_000 };
  expect(scene.keeper.silencesOf('toy/a')).toEqual([
    { ...untried, node: 'w1' },
    { ...untried, node: 'w2' },
  ]);
  await scene.clock.advance(0);
  const shown = [
    { ...untried, node: 'w1', made: { id: 'id-w1', startsAt: 'start' }, problem: '' },
    { ...untried, node: 'w2', made: undefined, problem: 'no answer from am' },
  ];
  expect(scene.keeper.silencesOf('toy/a')).toEqual(shown);
  const told = scene.changes();
  expect(told).toBeGreaterThan(0);
  await scene.clock.advance(1_000_000);
  expect(scene.asked().filter((each) => each === 'keep w1').length).toBeGreaterThan(5);
  expect(new Set(scene.keeper.silencesOf('toy/a'))).toEqual(new Set(shown));
  expect(scene.changes()).toBe(told);
  scene.follow(['w2']);
  expect(scene.keeper.silencesOf('toy/a')).toMatchObject([{ node: 'w2' }]);
});

test('the silence of a node that is in progress a second time is told again', async () => {
  using scene: Rig = rig(
    answering(
      () => scene.clock,
      () => false,
    ),
  );
  scene.follow(['w1']);
  await scene.clock.advance(0);
  scene.follow([]);
  await scene.clock.advance(0);
  const told = scene.changes();
  scene.follow(['w1']);
  expect(scene.keeper.silencesOf('toy/a')).toMatchObject([{ made: undefined }]);
  await scene.clock.advance(0);
  expect(scene.keeper.silencesOf('toy/a')).toMatchObject([{ made: { id: 'id-w1' } }]);
  expect(scene.changes()).toBe(told + 1);
});

test('the metrics count silences and failed requests of each server, and a leader that ends its term has no silences', async () => {
  let isGone = false;
  using scene: Rig = rig(
    answering(
      () => scene.clock,
      () => isGone,
    ),
  );
  scene.follow(['w1', 'w2'], [URL, `${URL}/other`]);
  await scene.clock.advance(0);
  expect(await scene.measured()).toEqual([
    'refit_silences{server="am"} 4',
    'refit_silence_failed_requests_total{server="am"} 0',
  ]);
  scene.follow(['w1']);
  await scene.clock.advance(0);
  expect(await scene.measured()).toContain('refit_silences{server="am"} 1');
  isGone = true;
  // The server fails at the next renewal. The silence lasts for some time after that.
  await scene.clock.advance(100_000);
  expect(await scene.measured()).toEqual([
    'refit_silences{server="am"} 1',
    'refit_silence_failed_requests_total{server="am"} 1',
  ]);
  await scene.clock.advance(300_000);
  expect(await scene.measured()).toContain('refit_silences{server="am"} 0');
  expect(scene.keeper.silencesOf('toy/a')).toMatchObject([{ made: undefined }]);
  scene.stop();
  await scene.clock.advance(0);
  expect((await scene.measured()).filter((line) => line.startsWith('refit_silences'))).toEqual([]);
});

/** Ends the term of a keeper at the end of a test. */
class Term extends AbortController implements Disposable {
  [Symbol.dispose](): void {
    this.abort();
  }
}

/** Returns a keeper that nobody runs yet. */
function idleRig(answer: Answer) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const note = (what: string) => async (wanted: Wanted) => {
    asked.push(`${what} ${wanted.comment}`);
    return await answer(wanted);
  };
  const metrics = createMetrics();
  const server = {
    keep: note('keep'),
    end: async (wanted: Wanted) => void (await note('end')(wanted)),
  };
  const keeper = createSilenceKeeper(clock, server, metrics);
  const rule = (name: string, url = URL): SilenceRule => {
    const matchers = [{ name: 'node', value: '{node}', isRegex: false }];
    return { name, url, matchers, lastsMs: 300_000 };
  };
  const scopeOf = (nodes: readonly string[], rules = [rule('nodes')]) => ({
    policy: 'p',
    rules,
    uid: 'u',
    nodes,
  });
  const sizes = async (): Promise<string[]> =>
    (await metrics.expose()).body.split('\n').filter((line) => line.startsWith('refit_silences{'));
  return { clock, asked, keeper, rule, scopeOf, sizes };
}

const MADE: Answer = async ({ node }) =>
  await Promise.resolve({ id: `id-${node}`, startsAt: 'start', endsAt: '2100-01-01T00:00:00Z' });

test('silences that are needed before this process leads are made when it leads', async () => {
  const { clock, asked, keeper, scopeOf, sizes } = idleRig(MADE);
  keeper.follow('toy/a', scopeOf(['w1']));
  await clock.advance(600_000);
  expect(asked).toEqual([]);
  expect(await sizes()).toEqual([]);
  const stop = new AbortController();
  const running = keeper.run(stop.signal);
  expect(await sizes()).toEqual(['refit_silences{server="am"} 0']);
  await clock.advance(0);
  expect(asked).toEqual(['keep Refit upgrades node w1: plan toy/a (u), silence nodes']);
  expect(await sizes()).toEqual(['refit_silences{server="am"} 1']);
  stop.abort();
  await running;
  expect([keeper.silencesOf('toy/a'), keeper.stateOf('toy/a')]).toEqual([[], undefined]);
  expect(await sizes()).toEqual([]);
});

test('each plan has its own silences, and its own state', async () => {
  const { clock, keeper, rule, scopeOf } = idleRig(async (wanted) => {
    if (wanted.rule.name === 'bad') throw new Error('no');
    return await MADE(wanted);
  });
  using stop = new Term();
  void keeper.run(stop.signal);
  keeper.follow('toy/a', scopeOf(['w2', 'w1'], [rule('b'), rule('a')]));
  keeper.follow('toy/b', scopeOf(['w3'], [rule('bad')]));
  await clock.advance(0);
  expect(keeper.silencesOf('toy/a').map(({ node, silence }) => `${node} ${silence}`)).toEqual([
    'w1 a',
    'w1 b',
    'w2 a',
    'w2 b',
  ]);
  expect(keeper.stateOf('toy/a')).toEqual({
    isGood: true,
    message: 'alerts about nodes in progress are silenced',
  });
  expect(keeper.stateOf('toy/b')).toMatchObject({ isGood: false });
  keeper.follow('toy/b', scopeOf(['w3'], []));
  expect([keeper.stateOf('toy/b'), keeper.silencesOf('toy/b')]).toEqual([undefined, []]);
  expect(keeper.stateOf('toy/a')).toMatchObject({ isGood: true });
});

test('a failure to end a silence is counted, is tried again after 15 s, and tells nobody', async () => {
  let fails = 0;
  const scene = idleRig(async (wanted) => {
    if (fails-- > 0) throw new Error('no');
    return await MADE(wanted);
  });
  const { clock, asked, keeper, scopeOf } = scene;
  using stop = new Term();
  void keeper.run(stop.signal);
  keeper.follow('toy/a', scopeOf(['w1']));
  await clock.advance(0);
  let told = 0;
  keeper.onChange(() => told++);
  fails = 1;
  keeper.follow('toy/a', scopeOf([]));
  await clock.advance(14_999);
  expect(asked.map((each) => each.slice(0, 4))).toEqual(['keep', 'end ']);
  await clock.advance(1);
  expect(asked.map((each) => each.slice(0, 4))).toEqual(['keep', 'end ', 'end ']);
  await clock.advance(3_600_000);
  expect([asked.length, told]).toEqual([3, 0]);
  expect(await scene.sizes()).toEqual(['refit_silences{server="am"} 0']);
});

test('a node whose silence is still being made when it ends has its silence ended at once', async () => {
  const answer = Promise.withResolvers<Made | undefined>();
  let isFirst = true;
  const { clock, asked, keeper, scopeOf } = idleRig(async (wanted) => {
    if (!isFirst) return await MADE(wanted);
    isFirst = false;
    return await answer.promise;
  });
  using stop = new Term();
  void keeper.run(stop.signal);
  keeper.follow('toy/a', scopeOf(['w1']));
  await clock.advance(0);
  keeper.follow('toy/a', scopeOf([]));
  await clock.advance(0);
  expect(asked).toHaveLength(1);
  answer.resolve({ id: 'x', startsAt: 'start', endsAt: '2100-01-01T00:00:00Z' });
  await clock.advance(0);
  expect(asked.map((each) => each.slice(0, 4))).toEqual(['keep', 'end ']);
});

test('a node whose silence was never asked for has nothing to end', async () => {
  const { clock, asked, keeper, scopeOf } = idleRig(MADE);
  keeper.follow('toy/a', scopeOf(['w1']));
  keeper.follow('toy/a', scopeOf([]));
  using stop = new Term();
  void keeper.run(stop.signal);
  await clock.advance(3_600_000);
  expect(asked).toEqual([]);
});

test('a silence is asked for once, however often the plan is followed while the server is silent', async () => {
  const { clock, asked, keeper, scopeOf } = idleRig(async () => await new Promise(() => undefined));
  using stop = new Term();
  void keeper.run(stop.signal);
  for (const nodes of [['w1'], ['w1', 'w2'], ['w2', 'w1', 'w3']]) {
    keeper.follow('toy/a', scopeOf(nodes));
    await clock.advance(0);
  }
  expect(asked).toHaveLength(1);
});

test('an answer that comes after the end of the term changes nothing', async () => {
  const answer = Promise.withResolvers<Made | undefined>();
  const { clock, keeper, scopeOf } = idleRig(async () => await answer.promise);
  let told = 0;
  keeper.onChange(() => told++);
  const stop = new AbortController();
  const running = keeper.run(stop.signal);
  keeper.follow('toy/a', scopeOf(['w1']));
  await clock.advance(0);
  stop.abort();
  await running;
  answer.resolve(undefined);
  await clock.advance(0);
  expect([told, keeper.stateOf('toy/a')]).toEqual([0, undefined]);
});

test('a silence that fails is asked for again after 15 s, and its problem has at most 300 characters', async () => {
  const { clock, asked, keeper, scopeOf } = idleRig(async () => {
    await Promise.resolve();
    throw new Error(`\u001B${'x'.repeat(400)}`);
  });
  using stop = new Term();
  void keeper.run(stop.signal);
  keeper.follow('toy/a', scopeOf(['w1']));
  await clock.advance(14_999);
  expect(asked).toHaveLength(1);
  expect(keeper.silencesOf('toy/a')).toMatchObject([{ problem: `\uFFFD${'x'.repeat(299)}` }]);
  await clock.advance(1);
  expect(asked).toHaveLength(2);
});
