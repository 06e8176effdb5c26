/**
 * Tests which waves can be approved and which checks can be accepted, and the messages for all other waves and checks.
 */
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { assertIsCheck, assertNeedsApproval } from './approve.ts';

const snapshot = buildSnapshot(buildRollout([buildStage('worker', ['w1', 'w2', 'w3'])]));
const waves = [{ count: 1 }, { count: 1, needsApproval: true }];
const policy = buildPolicy({ name: 'slow', waves });

const said = (check: () => void): string => {
  try {
    check();
    return 'accepted';
  } catch (error) {
    return String(error);
  }
};

describe('refit approve --wave', () => {
  test.each([
    [2, 'accepted'],
    [1, 'wave 1 needs no approval; the waves of UpgradePolicy slow are 1, 2 (needs approval), 3'],
    [3, 'wave 3 needs no approval; the waves of UpgradePolicy slow are 1, 2 (needs approval), 3'],
    [4, '--wave is 4, but the waves of UpgradePolicy slow are 1, 2 (needs approval), 3'],
  ])('says whether wave %d needs an approval', (wave, expected) => {
    expect(said(() => assertNeedsApproval({ snapshot, policy }, wave))).toContain(expected);
  });

  test('refuses a wave without a node of the plan, such as a wave of a plan with controllers alone', () => {
    const alone = buildSnapshot(buildRollout([buildStage('controller', ['c1', 'c2'])]));
    expect(said(() => assertNeedsApproval({ snapshot: alone, policy }, 2))).toContain(
      'wave 2 of UpgradePolicy slow has no node of this plan, so no node waits for its approval; nodes of the control plane are in no wave',
    );
  });

  test('refuses a plan whose policy has no waves', () => {
    const plain = buildPolicy({ name: 'slow' });
    expect(said(() => assertNeedsApproval({ snapshot, policy: plain }, 1))).toContain(
      'the plan has no waves, because UpgradePolicy slow has none',
    );
  });
});

test.each([
  ['daemonSets', 'accepted'],
  [
    'other',
    '--check is "other", which is no health check of UpgradePolicy slow: it has daemonSets',
  ],
])('refit accept refuses --check %s with a sentence that says what is wrong', (check, expected) => {
  const checks = [{ kind: 'daemonSets', name: 'daemonSets', pods: 'all' }] as const;
  const checked = buildPolicy({ name: 'slow', health: { checks } });
  expect(said(() => assertIsCheck({ policy: checked }, check))).toContain(expected);
});
