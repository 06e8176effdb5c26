/** What gates are asked is made of the snapshot, and of nothing else that a decision holds. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { T0 } from '../../../test/support/clock/times.ts';
import { gateInput } from './types.ts';

test('what else a decision holds neither reaches a gate nor hides a fact', () => {
  const stage = buildStage('worker', ['n1']);
  const snapshot = buildSnapshot(buildRollout([stage]));
  const more = { plan: { metadata: { name: 'plan' } }, controls: { pause: 'of something else' } };
  const context = {
    snapshot,
    stage,
    target: buildTarget('n1'),
    policy: buildPolicy(),
    now: T0,
    ...more,
  };
  const input = gateInput(context, 1);
  expect(input).not.toHaveProperty('snapshot');
  expect(input).not.toHaveProperty('plan');
  expect(input.controls).toBe(snapshot.controls);
});
