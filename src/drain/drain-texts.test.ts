/** Shows the texts about drains that people and the log read, and which previews hold a drain back. */
import { expect, test } from 'vitest';
import { EvictionRequestApi } from '../../test/support/builders/eviction-request-api.ts';
import { buildLog } from '../../test/support/builders/logs.ts';
import { PodApi, refuse } from '../../test/support/builders/pod-api.ts';
import { buildPod } from '../../test/support/builders/pods.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { describeProgress, isDrained, progressOf } from './drain-node.ts';
import { hasObstacles, isHeldBack } from './drain-preview.ts';
import { requestFor } from './eviction-request-objects.ts';
import { createDrains } from './running-drains.ts';

const OBSTACLE = { budget: 'default/web', pods: ['default/a'], reason: 'it wants all' };
const REFUSED = {
  pod: 'default/a',
  reason: 'has no controller, so nothing would create it again',
} as const;
const clear = { evictable: 1, obstacles: [], refused: [] };
const blocked = { ...clear, obstacles: [OBSTACLE] };
const forbidden = { ...clear, refused: [REFUSED] };

test('a preview has obstacles if a budget blocks the drain or the options forbid an eviction', () => {
  expect([clear, blocked, forbidden].map(hasObstacles)).toEqual([false, true, true]);
});

test('a budget holds a drain back only if the policy waits for budgets, and a refused pod always', () => {
  const heldBack = (options: object): boolean[] =>
    [clear, blocked, forbidden].map((preview) => isHeldBack(preview, options));
  expect(heldBack({})).toEqual([false, false, true]);
  expect(heldBack({ waitsForBudgets: false })).toEqual([false, false, true]);
  expect(heldBack({ waitsForBudgets: true })).toEqual([false, true, true]);
});

test('a drain has ended if no pod is left and no volume is attached', () => {
  expect(isDrained({ left: 0 })).toBe(true);
  expect(isDrained({ left: 1 })).toBe(false);
  expect(isDrained({ left: 0, detaching: 'waiting for 1 volume to detach' })).toBe(false);
});

test('the progress names the first five pods in alphabetical order, and joins what blocks them', () => {
  const pods = ['f', 'e', 'd', 'c', 'b', 'a'].map((name) => buildPod(name));
  expect(progressOf(pods, 'first', undefined, 'second')).toEqual({
    left: 6,
    pods: ['default/a', 'default/b', 'default/c', 'default/d', 'default/e'],
    blockedBy: 'first; second',
  });
  expect(progressOf([], undefined)).toEqual({ left: 0 });
});

test.each([
  [{ left: 1, pods: ['default/a'] }, undefined, '1 pod is left (default/a)'],
  [
    { left: 2, pods: ['default/a', 'default/b'] },
    'n1',
    '2 pods are left on node n1 (default/a, default/b)',
  ],
  [{ left: 3, pods: ['default/a'] }, 'n1', '3 pods are left on node n1 (default/a and 2 more)'],
  [
    { left: 1, pods: ['default/a'], blockedBy: 'it is blocked', waitingFor: 'it is requested' },
    'n1',
    '1 pod is left on node n1 (default/a): it is blocked; it is requested',
  ],
  [
    { left: 1, pods: ['default/a'], waitingFor: 'it is requested' },
    undefined,
    '1 pod is left (default/a): it is requested',
  ],
  [{ left: 0 }, 'n1', '0 pods are left on node n1'],
  [{ left: 0, detaching: 'it waits' }, undefined, 'no pod is left; it waits'],
  [{ left: 0, detaching: 'it waits' }, 'n1', 'no pod is left on node n1; it waits'],
])('the progress %j on the node %s is told completely', (progress, node, text) => {
  expect(describeProgress(progress, node)).toBe(text);
});

/** Starts a leader whose policies let drains use EvictionRequests. One request of an earlier leader for `n1` is left. */
function lead() {
  const clock = new FakeClock();
  const lifecycle = new EvictionRequestApi();
  const log: string[] = [];
  const left = requestFor(buildPod('a', { uid: '0c5dc5a9-8d5e-4b3f-9a5e-00000000000a' }), 'n1');
  lifecycle.requests.set(`default/${left.metadata.name}`, left);
  const drains = createDrains({
    client: lifecycle.over(new PodApi().client),
    clock,
    random: () => 0.99,
    log: buildLog(log, 'debug'),
    usesRequests: () => true,
  });
  const lines = (msg: string) =>
    log.map((line) => JSON.parse(line) as { msg: string }).filter((line) => line.msg === msg);
  return { clock, lifecycle, drains, lines };
}

test('a withdrawal before an uncordon that takes longer than 15 seconds is logged as a warning', async () => {
  const { clock, lifecycle, drains, lines } = lead();
  lifecycle.beforeDelete = async () => await new Promise(() => undefined);
  await clock.runUntil(drains.forget('n1'));
  const msg = 'EvictionRequests of the node may be left';
  const problem = 'it took longer than 15 s';
  expect(lines(msg)).toEqual([expect.objectContaining({ level: 'warn', node: 'n1', problem })]);
  expect(clock.monotonic()).toBe(15_000);
});

test('a search for requests that are left is logged at the level debug if the API server refuses it', async () => {
  const { clock, lifecycle, drains, lines } = lead();
  lifecycle.onList = () => {
    throw refuse({ code: 403, reason: 'Forbidden', message: 'it is forbidden' });
  };
  const stop = new AbortController();
  const term = drains.run(stop.signal);
  await clock.advance(0);
  stop.abort();
  await clock.runUntil(term);
  expect(lines('leftover EvictionRequests cannot be withdrawn')).toEqual([
    expect.objectContaining({ level: 'debug', problem: 'it is forbidden' }),
  ]);
});
