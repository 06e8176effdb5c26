/** Tells the keeper of locks which plans need the locks that they share with other tools. */
import type { LockKeeper } from '../../coordination/lock-keeper.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { OrphanedPlan } from '../contract/features.ts';
import type { World } from '../contract/world.ts';
import { isFinal, targetsIn } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

/**
 * Lets the keeper read the locks while the plan is unfinished, and hold the locks while the plan has targets in
 * progress. `plan` identifies the plan among the plans of all dialects.
 */
export function followLocks(
  keeper: LockKeeper | undefined,
  plan: string,
  { rollout }: Snapshot,
  { coordinate = [] }: RolloutPolicy,
): void {
  if (isFinal(rollout)) {
    keeper?.follow(plan, coordinate, 'over');
    return;
  }
  // If a part of the record cannot be read, that part may contain targets in progress.
  const isAtWork = rollout.unread !== undefined || targetsIn(rollout, 'intended').length > 0;
  keeper?.follow(plan, coordinate, isAtWork ? 'at-work' : 'waits');
}

interface Parts {
  readonly dialect: Dialect;
  readonly world: World;
  readonly locks?: Pick<LockKeeper, 'follow' | 'forget'> | undefined;
  readonly policyFor: (plan: KubeObject) => RolloutPolicy;
}

/** Makes the keeper hold the locks of deleted plans until no node works for these plans any more. */
export function followLocksOfOrphans(
  { dialect, world, locks, policyFor }: Parts,
  orphans: readonly OrphanedPlan[],
): void {
  if (!locks) return;
  // The two slashes ensure that this name differs from the name of every plan.
  const title = `${dialect.name}//deleted`;
  const atWork = orphans.filter((orphan) => isAtWork(dialect, world, orphan));
  const tools = atWork.flatMap(({ plan }) => policyFor(plan).coordinate ?? []);
  if (tools.length > 0) locks.follow(title, tools, 'at-work');
  else locks.forget(title);
}

function isAtWork(dialect: Dialect, world: World, { rollout, plan }: OrphanedPlan): boolean {
  return rollout.stages.some((stage) =>
    stage.targets.some((target) => {
      const { kind } = dialect.signal.read(world, rollout, stage, target, plan);
      return kind === 'sent' || kind === 'working';
    }),
  );
}
