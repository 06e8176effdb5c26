/** Keeps what one leader remembers of its term: how long it has watched, what probes answered, and which writes were refused. */
import { isHeldBack } from '../../drain/drain-preview.ts';
import type { Drains } from '../../drain/running-drains.ts';
import type { Clock } from '../../util/clock.ts';
import { type FailureReasons, withFailures } from '../model/failures.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Known } from './gather.ts';
import { keptPreviews } from './kept-previews.ts';
import { type ProbeBackoff, probeBackoff } from './probe-backoff.ts';
import { type Answers, answersOf, type Prober } from './probes.ts';
import { type RefusedWrites, type ReportRefusal, refusedWrites } from './refused-writes.ts';
import { type TargetTimes, targetTimes, watchTimes } from './watch-times.ts';

interface Parts {
  readonly clock: Clock;
  readonly prober: Prober;
  readonly drains?: Drains | undefined;
}

/** What the leader remembers of one plan. */
interface PlanMemory {
  readonly backoffs: ProbeBackoff;
  readonly watch: TargetTimes;
  /** The monotonic time in milliseconds at which the drain of each node was first found blocked. */
  readonly blockedSince: Map<string, number>;
  /** Why targets failed in this term; undefined before the first failure. */
  failures: FailureReasons | undefined;
}

/** What one leader remembers. It is not valid in another term of leadership. */
export interface TermMemory {
  readonly refusals: RefusedWrites;
  /** Returns the answers for one reconcile of the plan, which are empty at first. Each question is asked once in a reconcile. */
  newAnswers(key: string): Answers;
  /** Returns what a snapshot of the plan needs besides the watched objects: the answers, the drains, and the watched times. */
  knownOf(key: string, answers: Answers, policy: RolloutPolicy): Known;
  /** Remembers why targets of the plan have failed. */
  failed(key: string, failures: FailureReasons): void;
  /** Forgets the plan, which was deleted. */
  forget(key: string): void;
}

/** Starts the memory of one term of leadership. `report` is called for each newly refused write. */
export function termMemory({ clock, prober, drains }: Parts, report: ReportRefusal): TermMemory {
  const times = watchTimes(clock);
  const preview = keptPreviews();
  const drainDelegations = new Set<string>();
  const refusals = refusedWrites(clock, report);
  const plans = new Map<string, PlanMemory>();
  const newPlan = (): PlanMemory => ({
    backoffs: probeBackoff(),
    watch: targetTimes(),
    blockedSince: new Map(),
    failures: undefined,
  });
  const ofPlan = (key: string): PlanMemory => plans.getOrInsertComputed(key, newPlan);
  return {
    refusals,
    newAnswers: (key) =>
      answersOf({ drainDelegations, preview, backoffs: ofPlan(key).backoffs }, clock.monotonic()),
    knownOf(key, { known }, policy) {
      const { watch, blockedSince, failures } = ofPlan(key);
      const now = clock.monotonic();
      watchBlocked(blockedSince, known.drainPreviews, policy, now);
      return {
        ...known,
        failures,
        drainPreviews: prober.previewDrains && known.drainPreviews,
        blockedMsOf: (node) => {
          const since = blockedSince.get(node);
          return since === undefined ? undefined : now - since;
        },
        drainOf: (node, owner) => drains?.stateOf(node, owner),
        watch: (target, observation) => {
          if (policy.heldBy === undefined) return watch(target, observation, now);
          // While the policy pauses every target, no target can miss a deadline. The measured times start again from zero after the pause.
          watch(target, { kind: 'none' }, now);
          return { watchedMs: 0, followedMs: 0 };
        },
        watchForeign: (work) => times.watchForeign(work),
        watchPayloads: (rollout) => times.watchPayloads(rollout, policy.agent),
        refusalOf: (rollout, target, part) => refusals.of(rollout, target, part),
      };
    },
    failed(key, failures) {
      const plan = ofPlan(key);
      plan.failures = withFailures(plan.failures, failures);
    },
    forget(key) {
      drainDelegations.clear();
      plans.delete(key);
    },
  };
}

/**
 * Records the time since which the drain of each node is prevented from its start. If the drain of a node was not previewed in this
 * turn, its entry does not change.
 */
function watchBlocked(
  since: Map<string, number>,
  previews: Known['drainPreviews'] = new Map(),
  { drain }: RolloutPolicy,
  now: number,
): void {
  for (const [node, preview] of previews) {
    if (preview.kind !== 'answered') continue;
    if (isHeldBack(preview.answer, drain)) since.getOrInsert(node, now);
    else since.delete(node);
  }
}
