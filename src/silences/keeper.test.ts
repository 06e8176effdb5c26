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
