/**
 * Verifier: after its success, a target keeps its slot for the rest period of the plan, or for `settle` of the policy if that is longer.
 */
import { rfc3339 } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { type Gate, PASS, wait } from './types.ts';

export const restOver: Gate = {
  name: 'rest-over',
  evaluate({ stage, target, facts: { observation, watchedMs }, policy, now }) {
    const { settleMs = 0 } = policy;
    const restMs = Math.max(stage.restMs ?? 0, settleMs);
    if (restMs === 0 || observation.kind !== 'succeeded') return PASS;
    const seen = now - (watchedMs ?? 0);
    const said = Date.parse(observation.since);
    // The clock of the node may be wrong. If `settle` of the policy decides, a reported time from before the attempt
    // does not count. Otherwise the node could settle for too short a time.
    const isPossible = said >= Date.parse(target.since) || settleMs < restMs;
    // The leader's own clock also limits the rest, because the clock of the node may be ahead.
    const until = (isPossible ? Math.min(said, seen) : seen) + restMs;
    // The negated comparison is also true for NaN, so that a time that cannot be read does not delay the target forever.
    if (!(now < until)) return PASS;
    const period = formatDuration(restMs);
    const message =
      restMs === settleMs
        ? `${target.name} keeps its slot for ${period} after its success, because UpgradePolicy ${policy.name} has settle: ${period}`
        : `${target.name} keeps its slot for ${period} after its success`;
    const end = rfc3339(until);
    return wait('Resting', message, `the rest period is over, at ${end}`, {
      recheckMs: until - now,
      until: end,
    });
  },
};
