/**
 * Gate: checks again whether the target may go from its version to the version of the plan. Both versions may have
 * changed since the plan started.
 */
import { judgePlan } from '../../versions/plan-rules.ts';
import { asksForEarlierVersions, goesBack } from '../model/earlier-versions.ts';
import type { Reason } from '../model/reasons.ts';
import { withKubernetesVersion } from '../model/rollout.ts';
import {
  failedInEarlierStage,
  momentAfter,
  recordedUpgrade,
} from '../snapshot/recorded-versions.ts';
import { untilEarlierVersionsAreRead } from './earlier-versions-read.ts';
import { pinAgainst } from './pins.ts';
import { type Gate, PASS } from './types.ts';

export const versionsFollow: Gate = {
  name: 'versions-follow',
  mayRefusePlan: ({ cluster: { apiServers }, abilities: { waitsForVersions } }) =>
    apiServers !== undefined && !waitsForVersions,
  evaluate(input) {
    const { stage, target, facts, earlier, policy, now } = input;
    const { apiServers } = input.cluster;
    const { decisions } = input.plan;
    const { name } = target;
    const { allow, countsVirtual = false } = policy;
    if (!apiServers || stage.keepsVersion === true) return PASS;
    if (facts.virtual !== undefined && !countsVirtual) return PASS;
    // A pin keeps the target at its version, so the plan does not move it.
    if (pinAgainst(policy, stage, facts) !== undefined) return PASS;
    if (asksForEarlierVersions(input)) return untilEarlierVersionsAreRead(decisions);
    const isBack = goesBack(input, stage, target, facts);
    const judge = (current: string | undefined): Reason | undefined =>
      judgePlan(
        [
          {
            ...withKubernetesVersion(stage),
            targets: [{ name, current, goesBack: isBack, hasKubelet: false }],
          },
        ],
        [],
        allow,
      ).problems[0];
    const reason = judge(facts.version);
    if (!reason) return PASS;
    if (input.abilities.waitsForVersions)
      return {
        kind: 'wait',
        reason,
        ends: 'the plan names another version, or a policy allows it',
      };
    const brought = recordedUpgrade(input, earlier, stage.role, name);
    if (!brought || judge(brought.version)) {
      const isAlone = failedInEarlierStage(earlier, stage.role, name);
      return { kind: 'stop', reason, ...(isAlone ? {} : { ofPlan: true }) };
    }
    const why = `${reason.message}; an earlier command brought it to ${brought.version}, which it does not report yet`;
    const ends = 'the node reports the version of the earlier command';
    return {
      kind: 'wait',
      reason: { ...reason, message: why },
      ends,
      ...momentAfter(brought.since, now),
    };
  },
};
