/**
 * Tells the health monitor which nodes a plan upgrades, and the time from which the plan needs the results of its
 * checks.
 */
import type { HealthCheck } from '../../health/checks.ts';
import type { HealthMonitor } from '../../health/monitor.ts';
import { factsOf, isRunBegun, nodeNameOf } from '../gates/types.ts';
import { newestVersionOf } from '../model/newest-version.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Returns the checks that count now, with the version of the plan. The readiness counts only until the run has begun,
 * and never on the way back.
 */
function checksOf(snapshot: Snapshot, policy: RolloutPolicy): HealthCheck[] {
  const { checks = [] } = policy.health ?? {};
  return checks.flatMap((check): HealthCheck[] => {
    if (check.kind !== 'readiness') return [check];
    const goesBack = snapshot.rollout.stages.some((stage) => stage.goesBack === true);
    return goesBack || isRunBegun(snapshot)
      ? []
      : [{ ...check, to: newestVersionOf(snapshot.rollout) ?? '' }];
  });
}

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
  const checks = checksOf(snapshot, policy);
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
