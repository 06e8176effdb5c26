/**
 * Puts the workers of a stage in order by `drain.startWith` of an UpgradePolicy: the workers with the fewest pods that
 * a PodDisruptionBudget covers come first.
 */
import type { Refusal } from '../gates/registry.ts';
import { type DecisionContext, labelsOf, wait } from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import { isOfControlPlane } from '../model/control-plane.ts';
import { isFinal, type Stage, type Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

type Context = Pick<DecisionContext, 'snapshot' | 'policy'>;

/** Returns true if the order of targets that are left to start depends on the pods of PodDisruptionBudgets. */
export function needsBudgetPods({ rollout }: Snapshot, { drain }: RolloutPolicy): boolean {
  if (drain.startsWithFewest !== true || isFinal(rollout)) return false;
  return rollout.stages.some(
    ({ role, targets }) => role === 'worker' && targets.some(({ state }) => state === 'pending'),
  );
}

/**
 * Returns the targets of a group with the workers in order. Workers with equal numbers keep the order that they had, and nodes of the
 * control plane keep their places. While no numbers are known, all targets keep their places.
 */
export function fewestFirst(
  { snapshot, policy }: Context,
  stage: Stage,
  targets: readonly Target[],
): readonly Target[] {
  const { budgetPods } = snapshot.outside;
  if (policy.drain.startsWithFewest !== true || stage.role === 'controller') return targets;
  const byNode = answerOf(budgetPods)?.byNode;
  if (byNode === undefined) return targets;
  const isWorker = (target: Target): boolean => !isOfControlPlane(objectOf(snapshot, target));
  const numberOf = (target: Target): number => byNode.get(nodeOf(snapshot, target)) ?? 0;
  const numbered = targets.filter(isWorker).map((target) => [target, numberOf(target)] as const);
  const next = numbered.toSorted(([, a], [, b]) => a - b).values();
  return targets.map((target) => (isWorker(target) ? (next.next().value?.[0] ?? target) : target));
}

function objectOf(snapshot: Snapshot, target: Target) {
  return { labels: labelsOf(snapshot, target) };
}

/**
 * Returns the name of the Node of the target. Avoids gathering the other facts of the target where possible, because
 * sorting calls this function for every target.
 */
function nodeOf({ targets }: Snapshot, target: Target): string {
  return targets.nodeNameOf(target.key) ?? target.name;
}

/**
 * Returns a function that explains why a worker must wait: the pods have not been counted yet. That function returns
 * undefined if the target may start. The wait also ends if the first attempt to count the pods fails.
 */
export function uncountedWait(
  { snapshot, policy }: Context,
  stage: Stage,
): (target: Target) => Refusal | undefined {
  const isUncounted =
    policy.drain.startsWithFewest === true && snapshot.outside.budgetPods.kind === 'unasked';
  if (!isUncounted || stage.role === 'controller') return () => undefined;
  return (target) => {
    if (isOfControlPlane(objectOf(snapshot, target))) return undefined;
    const message = `the pods that PodDisruptionBudgets cover are being counted, because \`drain.startWith\` of UpgradePolicy ${policy.name} sorts the nodes by the number of these pods`;
    const verdict = wait('OrderUnknown', message, 'the pods are counted', { isPassing: true });
    return { ...verdict, gate: 'order', ofRollout: true };
  };
}
