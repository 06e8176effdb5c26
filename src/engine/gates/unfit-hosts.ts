/** Finds the targets of a plan that has not started whose hosts are known to be unable to run its version. */
import { onceForEach } from '../../util/memo.ts';
import type { Snapshot } from '../model/decision.ts';
import { hasStarted, withStages } from '../model/rollout.ts';

/**
 * Returns the names of targets by the problem of their hosts; empty once a target has started, because each host then refuses by
 * itself.
 */
export const unfitHosts = onceForEach(
  ({ rollout, facts }: Snapshot): ReadonlyMap<string, ReadonlySet<string>> => {
    const found = new Map<string, Set<string>>();
    if (hasStarted(rollout)) return found;
    for (const { target } of withStages(rollout)) {
      const { unfit, isThere } = facts.get(target.key) ?? {};
      if (unfit === undefined || isThere === true) continue;
      found.getOrInsertComputed(unfit, () => new Set()).add(target.name);
    }
    return found;
  },
);
