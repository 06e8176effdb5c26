/**
 * Tests how refused writes of node conditions are remembered: for one Node, or for all Nodes if the permission is
 * missing.
 */
import { expect, test } from 'vitest';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import type { NodeAction } from '../model/decision.ts';
import { refusedPartOf, refusedWrites } from './refused-writes.ts';

const MISSING = 'User "refit" cannot patch resource "nodes/status" at the cluster scope';
const TARGETS = [buildTarget('w1'), buildTarget('w2')] as const;

function scene() {
  const stage = buildStage('worker', TARGETS);
  const rollout = buildRollout([stage]);
  const told: string[] = [];
  const writes = refusedWrites(new FakeClock(T0), (_rollout, _at, { message }) => {
    told.push(message);
  });
  const refuse = (words: string): void => {
    for (const target of TARGETS) {
      const action: NodeAction = {
        kind: 'announce',
        stage,
        target,
        node: target.name,
        owner: 'plan',
        change: { set: ['MaintenancePlanned'], clear: [] },
      };
      writes.add(rollout, action, words, refusedPartOf(action, words));
    }
  };
  const isRefused = TARGETS.map(
    (target) => () => writes.of(rollout, target, 'announcement') !== undefined,
  );
  return { rollout, writes, told, refuse, isRefused };
}

test('a missing right counts once, for every Node, and keeps no target from its upgrade', () => {
  const { rollout, writes, told, refuse, isRefused } = scene();
  refuse(MISSING);
  expect(isRefused.map((each) => each())).toEqual([true, true]);
  expect(told).toEqual([expect.stringMatching(/^w1: .* without those of any node: User "refit"/)]);
  expect(TARGETS.map((target) => writes.of(rollout, target))).toEqual([undefined, undefined]);
  // Many refusals of one turn do not make the pause longer.
  expect(writes.nextMs()).toBe(2000);
});

test('what a webhook refuses counts for its Node', () => {
  const { told, refuse } = scene();
  refuse('admission webhook "a" denied the request');
  expect(told).toEqual([expect.stringMatching(/^w1: /), expect.stringMatching(/^w2: /)]);
});
