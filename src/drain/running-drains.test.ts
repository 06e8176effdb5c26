/** Shows what many drains at the same time report, and that forgotten and stopped drains leave nothing behind. */

import { afterEach, expect, test } from 'vitest';
import { PodApi, refuseByBudget } from '../../test/support/builders/pod-api.ts';
import { buildPod, type PodTraits } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { SkewedClock } from '../../test/support/clock/skewed-clock.ts';
import { silentLogger } from '../util/log.ts';
import { DEFAULT_DRAIN } from './pods.ts';
import { createDrains, type Drains } from './running-drains.ts';

const clock = new FakeClock();
const STARTED = clock.now();
let api = new PodApi();
let drains: Drains;
let endTerm: () => Promise<void>;
const told: string[] = [];
const OWNER = 'plan-uid/1';

function begin(pods: readonly [string, PodTraits?][], ...nodes: readonly string[]): Drains {
  api = new PodApi();
  for (const [name, traits] of pods) api.put(buildPod(name, traits));
  told.length = 0;
  drains = createDrains({ client: api.client, clock, random: () => 0.99, log: silentLogger });
  drains.onChange((node) => told.push(node));
  endTerm = beginTerm(drains);
  for (const node of nodes) drains.begin(node, OWNER, DEFAULT_DRAIN);
  return drains;
}

/** Starts a term of these drains. The returned function ends the term. */
function beginTerm(of: Drains): () => Promise<void> {
  const stop = new AbortController();
  const term = of.run(stop.signal);
  return async () => {
    stop.abort();
    await term;
  };
}

afterEach(async () => {
  await endTerm();
  expect({ watching: api.watching, timers: clock.pending }).toEqual({ watching: 0, timers: 0 });
});

test('nodes drain in parallel, and Refit reports the progress of each node', async () => {
  begin([['a'], ['b', { node: 'n2' }]], 'n1', 'n2', 'n3');
  expect(drains.stateOf('n1', OWNER)).toEqual({
    kind: 'draining',
    options: DEFAULT_DRAIN,
    since: clock.now(),
    left: 0,
  });
  await clock.advance(0);
  expect(api.evictions.map(({ pod }) => pod).toSorted()).toEqual(['default/a', 'default/b']);
  const draining = { kind: 'draining', options: DEFAULT_DRAIN, since: STARTED, left: 1 };
  const leftOn = (pod: string) => ({ ...draining, pods: [pod] });
  const drained = { kind: 'drained', options: DEFAULT_DRAIN, since: STARTED };
  expect(['n1', 'n2', 'n3', 'n4'].map((node) => drains.stateOf(node, OWNER))).toEqual([
    leftOn('default/a'),
    leftOn('default/b'),
    drained,
    undefined,
  ]);
  await clock.advance(5_000);
  api.remove('default/a');
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)).toEqual({
    kind: 'drained',
    options: DEFAULT_DRAIN,
    since: STARTED + 5_000,
  });
  expect(drains.stateOf('n2', OWNER)).toEqual(leftOn('default/b'));
  expect(new Set(told)).toEqual(new Set(['n1', 'n2', 'n3']));
});

test('a drain that waits says for what', async () => {
  begin([['a']]);
  api.onEvict = () => {
    throw refuseByBudget('web');
  };
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)).toMatchObject({
    kind: 'draining',
    left: 1,
    blockedBy: expect.stringContaining('default/web'),
  });
  expect(told.at(-1)).toBe('n1');
});

test('a drain that the options forbid is refused with the reason', async () => {
  begin([['bare', { controller: null }]]);
  drains.begin('n1', OWNER, { ...DEFAULT_DRAIN, unmanagedPods: 'refuse' });
  await clock.advance(0);
  const reason =
    'default/bare has no controller, so nothing would create it again; spec.drain.force: true of an UpgradePolicy allows this';
  expect(drains.stateOf('n1', OWNER)).toEqual({
    kind: 'failed',
    options: { ...DEFAULT_DRAIN, unmanagedPods: 'refuse' },
    reason,
    since: clock.now(),
  });
  expect(told).toEqual(['n1']);
});

test('begun again, a drain that is under way or has ended stays as it is', async () => {
  begin([['a']], 'n1', 'n1', 'n2');
  await clock.advance(0);
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  drains.begin('n2', OWNER, DEFAULT_DRAIN);
  await clock.advance(0);
  expect(api.evictions).toHaveLength(1);
  expect(api.watching).toBe(1);
  expect(drains.stateOf('n2', OWNER)?.kind).toBe('drained');
});

test('a forgotten drain ends, tells nobody, and may be begun anew', async () => {
  begin([['a']], 'n1');
  await clock.advance(0);
  const before = told.length;
  const ended = drains.forget('n1');
  await drains.forget('never begun');
  expect(drains.stateOf('n1', OWNER)).toBeUndefined();
  await ended;
  expect(api.watching).toBe(0);
  expect(told).toHaveLength(before);
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await clock.advance(0);
  // The pod is already terminating, so the new drain does not evict it again.
  expect(drains.stateOf('n1', OWNER)).toMatchObject({ kind: 'draining', left: 1 });
  expect(api.evictions).toHaveLength(1);
});

test('drains that are not kept end, whoever began them', async () => {
  begin([['a'], ['b', { node: 'n2' }], ['c', { node: 'n3' }]], 'n1', 'n2');
  drains.begin('n3', 'other-uid/1', DEFAULT_DRAIN);
  drains.keep((node, owner) => node === 'n1' || owner !== OWNER);
  const kinds = ['n1', 'n2'].map((node) => drains.stateOf(node, OWNER)?.kind);
  expect([...kinds, drains.stateOf('n3', 'other-uid/1')?.kind]).toEqual([
    'draining',
    undefined,
    'draining',
  ]);
  await clock.advance(0);
  expect(api.watching).toBe(2);
});

test('with the term all end and are forgotten, and whoever decided on one before begins none afterwards', async () => {
  begin([['a'], ['b', { node: 'n2' }]], 'n1', 'n2');
  const ended = endTerm();
  drains.begin('n3', OWNER, DEFAULT_DRAIN);
  await ended;
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  expect(['n1', 'n2', 'n3'].map((node) => drains.stateOf(node, OWNER))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  await clock.advance(0);
  expect({ watching: api.watching, asked: api.evictions }).toEqual({ watching: 0, asked: [] });
});

test('in the next term a drain begins anew, and its time with it', async () => {
  begin([['a']], 'n1');
  await clock.advance(0);
  await endTerm();
  await clock.advance(1_000);
  endTerm = beginTerm(drains);
  expect(drains.stateOf('n1', OWNER)).toBeUndefined();
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)).toEqual({
    kind: 'draining',
    options: DEFAULT_DRAIN,
    since: clock.now(),
    left: 1,
    pods: ['default/a'],
  });
});

test('begun anew at once, the old drain does not speak for the new one', async () => {
  begin([['bare', { controller: null }]]);
  drains.begin('n1', OWNER, { ...DEFAULT_DRAIN, unmanagedPods: 'refuse' });
  const ended = drains.forget('n1');
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await ended;
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)).toMatchObject({ kind: 'draining', left: 1 });
});

test('who no longer listens hears nothing', async () => {
  begin([['a']]);
  const heard: string[] = [];
  const stop = drains.onChange((node) => heard.push(node));
  stop();
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await clock.advance(0);
  expect(told).toEqual(['n1']);
  expect(heard).toEqual([]);
});

test('what is known of a node holds for one attempt only: the next one drains it anew', async () => {
  begin([], 'n1');
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)?.kind).toBe('drained');
  expect(drains.stateOf('n1', 'plan-uid/2')).toBeUndefined();
  api.put(buildPod('a'));
  drains.begin('n1', 'plan-uid/2', DEFAULT_DRAIN);
  await clock.advance(0);
  expect(drains.stateOf('n1', 'plan-uid/2')).toMatchObject({ kind: 'draining', left: 1 });
  expect(drains.stateOf('n1', OWNER)).toBeUndefined();
});

test('a wall clock that is set forward makes no drain older', async () => {
  begin([['a']]);
  await endTerm();
  const set = new SkewedClock(clock);
  drains = createDrains({ client: api.client, clock: set, random: () => 0.99, log: silentLogger });
  endTerm = beginTerm(drains);
  drains.begin('n1', OWNER, DEFAULT_DRAIN);
  await clock.advance(1_000);
  set.jump(7_200_000);
  expect(set.now() - (drains.stateOf('n1', OWNER)?.since ?? 0)).toBe(1_000);
});

test('begun with other options, it goes on with these, and its time with it', async () => {
  begin([['a']], 'n1');
  api.onEvict = () => undefined;
  await clock.advance(5_000);
  const since = drains.stateOf('n1', OWNER)?.since;
  const podRules = [{ pods: [{}], action: 'leave', turn: 0 }] as const;
  drains.begin('n1', OWNER, { ...DEFAULT_DRAIN, podRules });
  expect(drains.stateOf('n1', OWNER)).toMatchObject({
    kind: 'draining',
    since,
    options: { podRules },
  });
  await clock.advance(0);
  expect(drains.stateOf('n1', OWNER)).toMatchObject({ kind: 'drained' });
});
