/** Applies the version skew rules to a rollout: each target by its present version and by what earlier stages bring. */
import { judgePlan, type VersionVerdict } from '../../versions/plan-rules.ts';
import type { Snapshot } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { factsOf } from './context.ts';

export function versionVerdict(snapshot: Snapshot, { allow }: RolloutPolicy): VersionVerdict {
  const { rollout, apiServers } = snapshot;
  if (!apiServers) return { problems: [], unchecked: [] };
  const stages = rollout.stages
    .filter(({ keepsVersion }) => keepsVersion !== true)
    .map((stage) => ({
      ...stage,
      targets: stage.targets.map((target) => {
        const { version: current, node } = factsOf(snapshot, target);
        return { name: target.name, current, hasKubelet: stage.role === 'worker' || node !== undefined };
      }),
    }));
  return judgePlan(stages, apiServers, allow);
}

/** Reported when the rollout starts; undefined if every version is known. */
export function uncheckedReason(snapshot: Snapshot, policy: RolloutPolicy): Reason | undefined {
  const { unchecked } = versionVerdict(snapshot, policy);
  return unchecked.length === 0
    ? undefined
    : because('VersionUnchecked', `version checks skipped for ${unchecked.join('; ')}`);
}
