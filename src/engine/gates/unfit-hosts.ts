/**
 * Finds the targets of a plan whose hosts are known to be unable to run its version, as long as no target of the plan
 * has started.
 */
import { onceForEach } from '../../util/memo.ts';
import { hasStarted, withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { pinAgainst } from './pins.ts';

/**
 * Maps each problem of a host to the names of the targets whose hosts have this problem. The map is empty after the
 * first target has started, because then each host itself refuses the work. Targets that are pinned to another version
 * do not count, because the plan does not upgrade them.
 */
export const unfitHosts = onceForEach(({ rollout, targets }: Snapshot) =>
  onceForEach((policy: RolloutPolicy): ReadonlyMap<string, ReadonlySet<string>> => {
    const found = new Map<string, Set<string>>();
    if (hasStarted(rollout)) return found;
    for (const { stage, target } of withStages(rollout)) {
      const known = targets.get(target.key);
      if (known?.unfit === undefined || known.isThere) continue;
      const { unfit } = known;
      if (pinAgainst(policy, stage, known) !== undefined) continue;
      found.getOrInsertComputed(unfit, () => new Set()).add(target.name);
    }
    return found;
  }),
);
