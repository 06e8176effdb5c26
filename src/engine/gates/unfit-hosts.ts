/** Finds the targets of a plan that has not started whose hosts are known to be unable to run its version. */
import { onceForEach } from '../../util/memo.ts';
import type { Snapshot, TargetFacts } from '../model/decision.ts';
import { hasStarted, withStages } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { pinAgainst } from './pins.ts';

/**
 * Returns the names of targets by the problem of their hosts; empty once a target has started, because each host then refuses by
 * itself. Targets that are pinned to another version do not count, because the plan does not move them.
 */
export const unfitHosts = onceForEach(({ rollout, facts }: Snapshot) =>
  onceForEach((policy: RolloutPolicy): ReadonlyMap<string, ReadonlySet<string>> => {
    const found = new Map<string, Set<string>>();
    if (hasStarted(rollout)) return found;
    for (const { stage, target } of withStages(rollout)) {
      const known: Partial<TargetFacts> = facts.get(target.key) ?? {};
      const { unfit, isThere } = known;
      if (unfit === undefined || isThere === true) continue;
      if (pinAgainst(policy, stage, known) !== undefined) continue;
      found.getOrInsertComputed(unfit, () => new Set()).add(target.name);
    }
    return found;
  }),
);
