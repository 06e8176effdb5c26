/** Combines the work for a plan that is done outside of its nodes: health checks, hooks, locks, counts of pods and silences. */
import type { LockKeeper } from '../../coordination/lock-keeper.ts';
import type { BudgetPodCounter } from '../../drain/budget-pod-counter.ts';
import type { ComponentMonitor } from '../../health/component-monitor.ts';
import type { HealthMonitor } from '../../health/monitor.ts';
import type { HookRunner } from '../../hooks/runner.ts';
import type { SilenceKeeper } from '../../silences/keeper.ts';
import type { BackgroundReader } from '../../util/background-reader.ts';
import { type Asked, answered, NEVER, UNASKED } from '../model/asked.ts';
import { isFinal } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { needsBudgetPods } from '../schedule/fewest-first.ts';
import { followHealth } from './followed-health.ts';
import { followLocks } from './followed-locks.ts';
import { followSilences } from './followed-silences.ts';
import type { Known } from './gather.ts';

/** Each part is undefined if this process does not do that work. */
export interface OutsideParts {
  /** Asks the health checks of policies. */
  readonly health?: HealthMonitor | undefined;
  /** Keeps the locks that are shared with other tools. */
  readonly locks?: LockKeeper | undefined;
  /** Watches whether the controller manager and the scheduler work. */
  readonly components?: ComponentMonitor | undefined;
  /** Counts the pods that PodDisruptionBudgets cover. */
  readonly budgetPods?: BudgetPodCounter | undefined;
  /** Carries out the hooks of policies. */
  readonly hooks?: HookRunner | undefined;
  /** Silences alerts about nodes in progress. */
  readonly silences?: SilenceKeeper | undefined;
}

/** Returns the results of this work that are known for the plan now, as parts of its snapshot. */
export function outsideResults(
  { health, locks, hooks, budgetPods, components }: OutsideParts,
  plan: string,
): Pick<Known, 'health' | 'locks' | 'hooks' | 'budgetPods' | 'components'> {
  return {
    components: askedOf(components),
    health: health?.resultsOf(plan),
    locks: locks?.locks(),
    budgetPods: askedOf(budgetPods),
    hooks: hooks?.resultsOf(plan),
  };
}

/** Returns what this work has found. The reader asks in the background, so it asks before a decision depends on the answer. */
function askedOf<T>(reader: Pick<BackgroundReader<T>, 'known'> | undefined): Asked<T> {
  if (!reader) return NEVER;
  const known = reader.known();
  return known === 'unasked' ? UNASKED : answered(known);
}

/**
 * Tells other parts of the process which health checks, locks, pod counts and silences the plan needs. Hooks are not among them, because a
 * command of the turn starts them.
 */
export function followOutsideWork(
  { health, locks, silences, budgetPods, components }: OutsideParts,
  plan: string,
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
): void {
  followHealth(health, plan, snapshot, policy, now);
  components?.follow(
    plan,
    snapshot.cluster.components.kind !== 'never' && !isFinal(snapshot.rollout),
  );
  followLocks(locks, plan, snapshot, policy);
  budgetPods?.follow(plan, needsBudgetPods(snapshot, policy));
  followSilences(silences, plan, snapshot, policy);
}

/** Ends the work for a plan that was deleted. Locks stay, because nodes may still work for the plan. */
export function forgetOutsideWork(
  { health, hooks, silences, budgetPods }: OutsideParts,
  plan: string,
): void {
  health?.forget(plan);
  budgetPods?.forget(plan);
  hooks?.forget(plan);
  silences?.forget(plan);
}
