/**
 * Proves that a stalled target is reported once, and again only if the text differs in more than its numbers, because
 * the numbers in the message of a scheduler change each time.
 */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { assess } from '../assess/assess.ts';
import type { TargetFacts } from '../model/facts.ts';
import { type IdleMemory, idleMemory } from './idle-targets.ts';

/**
 * Returns the names of the targets that are reported at this time, and since when each target has been stalled. Times
 * are in milliseconds after T0.
 */
function toldAt(idle: IdleMemory, at: number, stalled: Readonly<Record<string, string>>) {
  const targets = ['w-1', 'w-2'].map((name) => buildTarget(name, 'intended', { since: later(0) }));
  const facts = Object.entries(stalled).map(([name, words]): [string, Partial<TargetFacts>] => [
    name,
    {
      observation: {
        kind: 'working',
        step: 'Starting',
        stalled: words,
        attempt: later(0),
        since: later(0),
      },
    },
  ]);
  const snapshot = buildSnapshot(
    buildRollout([buildStage('worker', targets)]),
    Object.fromEntries(facts),
  );
  const { stalled: told, stalls } = idle.at('plan', assess(snapshot, buildPolicy(), T0 + at));
  return [told.map(({ target }) => target.name), [...stalls.values()].map((since) => since - T0)];
}

test('a target that waits idle is reported once, and again only with another message', () => {
  const idle = idleMemory();
  expect(toldAt(idle, 0, { 'w-1': '0/9 nodes are available: 2 are full' })).toEqual([['w-1'], [0]]);
  expect(toldAt(idle, 10, { 'w-1': '0/9 nodes are available: 3 are full' })).toEqual([[], [0]]);
  const both = {
    'w-1': '0/9 nodes are available: 4 are full',
    'w-2': '0/9 nodes are available: 4 are full',
  };
  expect(toldAt(idle, 20, both)).toEqual([['w-2'], [0, 20]]);
  expect(toldAt(idle, 30, { ...both, 'w-1': 'ErrImagePull' })).toEqual([['w-1'], [30, 20]]);
  expect(toldAt(idle, 40, { 'w-2': both['w-2'] })).toEqual([[], [20]]);
  expect(toldAt(idle, 50, both)).toEqual([['w-1'], [50, 20]]);
});
