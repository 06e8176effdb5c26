/** What one leader remembers of its term: how long it has watched, what probes answered, which writes were refused. */
import type { Drains } from '../../drain/running-drains.ts';
import type { Clock } from '../../util/clock.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Known } from './gather.ts';
import { keptPreviews } from './kept-previews.ts';
import { probeBackoff } from './probe-backoff.ts';
import { type Answers, answersOf, type Prober } from './probes.ts';
import { type RefusedWrites, refusedWrites } from './refused-writes.ts';
import { targetTimes, watchTimes } from './watch-times.ts';

interface Parts {
  readonly clock: Clock;
  readonly prober: Prober;
  readonly drains?: Drains | undefined;
}

/** For one term of leadership: nothing of it is valid in another. `report` hears of each newly refused write. */
export function termMemory(
  { clock, prober, drains }: Parts,
  report: Parameters<typeof refusedWrites>[1],
) {
  const times = watchTimes(clock);
  const preview = keptPreviews();
  const drainDelegations = new Set<string>();
  const refusals: RefusedWrites = refusedWrites(clock, report);
  const newPlan = () => ({ backoffs: probeBackoff(), watch: targetTimes() });
  const plans = new Map<string, ReturnType<typeof newPlan>>();
  const ofPlan = (key: string): ReturnType<typeof newPlan> =>
    plans.getOrInsertComputed(key, newPlan);
  return {
    refusals,
    /** The answers of one reconcile of the plan: each question is asked once in it. */
    newAnswers: (key: string): Answers =>
      answersOf({ drainDelegations, preview, backoffs: ofPlan(key).backoffs }, clock.monotonic()),
    /** What a snapshot of the plan is gathered from, beside the objects that watches show. */
    knownOf(key: string, { known }: Answers, policy: RolloutPolicy): Known {
      const { watch } = ofPlan(key);
      const now = clock.monotonic();
      return {
        ...known,
        drainPreviews: prober.previewDrains && known.drainPreviews,
        drainOf: (node, owner) => drains?.stateOf(node, owner),
        watch: (target, observation) => {
          if (policy.heldBy === undefined) return watch(target, observation, now);
          // Nothing is late while nothing may go on, and its time begins anew afterwards.
          watch(target, { kind: 'none' }, now);
          return { watchedMs: 0, followedMs: 0 };
        },
        watchForeign: (work) => times.watchForeign(work),
        watchPayloads: (rollout) => times.watchPayloads(rollout, policy.agent),
        refusalOf: (rollout, target) => refusals.of(rollout, target),
      };
    },
    /** The plan is gone. */
    forget(key: string): void {
      drainDelegations.clear();
      plans.delete(key);
    },
  };
}
