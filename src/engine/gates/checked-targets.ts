/** Which targets are asked, before the first one starts, whether they can download what the plan names. */
import { onceForEach } from '../../util/memo.ts';
import type { Snapshot, TargetFacts } from '../model/decision.ts';
import { hasStarted, type Stage, type Target } from '../model/recorded.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

export interface CheckedTarget {
  readonly stage: Stage;
  readonly target: Target;
  readonly facts: TargetFacts;
}

/** Of each stage and platform, because each check costs two writes. A plan with windows of its own runs unattended: all. */
const MOST_CHECKED = 2;

export const targetsToCheck = onceForEach(({ rollout, facts }: Snapshot) =>
  onceForEach(({ prefetch, planWindows }: RolloutPolicy): CheckedTarget[] => {
    if (hasStarted(rollout) || prefetch === 'none') return [];
    const most = prefetch === 'all' || planWindows !== undefined ? Infinity : MOST_CHECKED;
    const able = rollout.stages.flatMap((stage) =>
      stage.targets.flatMap((target): CheckedTarget[] => {
        const known = facts.get(target.key);
        // Who has the version downloads nothing.
        return known?.downloads === undefined || known.isThere === true ? [] : [{ stage, target, facts: known }];
      }),
    );
    const places = Map.groupBy(able, ({ stage, facts: { platform } }) => `${stage.id} ${platform}`);
    const chosen = [...places.values()].flatMap((group) => group.slice(0, most));
    // A node of two commands has one check; its targets have keys of their own.
    return [...new Map(chosen.map((each) => [`${each.stage.role} ${each.target.name}`, each])).values()];
  }),
);
