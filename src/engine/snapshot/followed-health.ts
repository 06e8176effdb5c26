/**
 * Tells the health monitor which nodes a plan upgrades, and the time from which the plan needs the results of its
 * checks.
 */
import type { HealthMonitor } from '../../health/monitor.ts';
import { factsOf, nodeNameOf } from '../gates/types.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Makes the monitor perform the checks of the policy while the plan is unfinished. `plan` identifies the plan among the
 * plans of all dialects.
 */
export function followHealth(
  monitor: HealthMonitor | undefined,
  plan: string,
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
): void {
  const { rollout } = snapshot;
  const { checks = [] } = policy.health ?? {};
  if (checks.length === 0 || isFinal(rollout)) {
    monitor?.forget(plan);
    return;
  }
  // The upgraded nodes do not include failed targets. A failed target shows nothing about the release, and its failure
  // counts against the failure budget anyway.
  const upgraded = targetsIn(rollout, 'done').concat(targetsIn(rollout, 'intended'));
  const nodes = upgraded.map((target) => nodeNameOf(target, factsOf(snapshot, target)));
  const ends = targetsIn(rollout, 'intended').flatMap((target) => {
    const { observation, watchedMs } = factsOf(snapshot, target);
    return observation.kind === 'succeeded' && watchedMs !== undefined ? now - watchedMs : [];
  });
  monitor?.follow(plan, { policy: policy.name ?? '', checks, nodes, after: Math.max(0, ...ends) });
}
