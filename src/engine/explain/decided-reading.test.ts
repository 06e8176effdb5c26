/** Tests which decisions of people about the present run are shown. */
import { expect, test } from 'vitest';
import { withParts } from '../../../test/support/builders/parts.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { HealthRules } from '../../health/checks.ts';
import { assess } from '../assess/assess.ts';
import { answered, UNASKED } from '../model/asked.ts';
import type { DecisionsOfPeople } from '../model/decisions-of-people.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { readDecided } from './decided-reading.ts';

const BY = { by: 'ada', run: 'plan-uid/run-1' };
const APPROVALS = [
  { wave: 1, ...BY },
  { wave: 2, ...BY },
  { wave: 3, by: 'ada', run: 'plan-uid/run-0' },
];
const ACCEPTED = [
  { check: 'pods', ...BY },
  { check: 'disks', ...BY, until: later(0) },
  { check: 'other', ...BY },
];

function decided(
  policy: Partial<RolloutPolicy>,
  decisions: Partial<DecisionsOfPeople> | 'unasked',
) {
  const base = { plan: 'plan', place: 'refit/plan', exists: true, approvals: [], accepted: [] };
  const asked = decisions === 'unasked' ? UNASKED : answered({ ...base, ...decisions });
  const snapshot = withParts(buildSnapshot(buildRollout([])), { plan: { decisions: asked } });
  return readDecided(assess(snapshot, buildPolicy(policy), T0 + MINUTE));
}

const health = {
  checks: [{ name: 'pods' }, { name: 'disks' }, { name: 'alerts' }],
} as unknown as HealthRules;

test('the approvals of this run are shown, for the waves that need one', () => {
  const waves = [{ count: 1 }, { count: 1, needsApproval: true }, { needsApproval: true }];
  expect(decided({ waves }, { approvals: APPROVALS })).toEqual({
    approved: [APPROVALS[1]],
    accepted: [],
  });
});

test('the failures that people accept now are shown, for the checks of the policy', () => {
  expect(decided({ health }, { accepted: ACCEPTED })).toEqual({
    approved: [],
    accepted: [ACCEPTED[0]],
  });
});

test('nothing is shown without waves and checks, or before the decisions are known', () => {
  expect(decided({}, { approvals: APPROVALS, accepted: ACCEPTED })).toEqual({
    approved: [],
    accepted: [],
  });
  const waves = [{ needsApproval: true }];
  expect(decided({ waves, health }, 'unasked')).toEqual({ approved: [], accepted: [] });
});
