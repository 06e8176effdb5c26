/**
 * Warns about PodDisruptionBudgets that allow no disruption even while all their pods are healthy: how long a drain asks
 * for the evictions, and what happens after that.
 */
import { describeBlockingBudget } from '../../drain/budgets.ts';
import type { DrainPreview } from '../../drain/drain-preview.ts';
import { formatDuration } from '../../util/duration.ts';
import { factsOf } from '../gates/types.ts';
import { answerOf } from '../model/asked.ts';
import { isFinal, type Target, withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { DrainPolicy, RolloutPolicy } from '../policy/rollout-policy.ts';

/** The parts of a policy that say how long a drain waits for budgets. */
type DrainRules = Pick<RolloutPolicy, 'drain' | 'stepDeadlines'>;

/** Returns the warnings about the nodes that have not started, as far as their drains were previewed. */
export function drainWarnings({ rollout, targets }: Snapshot, policy: RolloutPolicy): string[] {
  if (isFinal(rollout)) return [];
  return withStages(rollout).flatMap(({ target }) => {
    const preview = answerOf(factsOf({ targets }, target).drainPreview);
    return target.state === 'pending' && preview ? budgetWarning(target, preview, policy) : [];
  });
}

/**
 * Returns one warning about the budgets of the node; an empty list if there is no such budget, or if the policy waits
 * for budgets before it cordons the node.
 */
export function budgetWarning(
  { name }: Pick<Target, 'name'>,
  { obstacles }: Pick<DrainPreview, 'obstacles'>,
  policy: DrainRules,
): string[] {
  if (obstacles.length === 0 || policy.drain.waitsForBudgets === true) return [];
  const budgets = obstacles.map(describeBlockingBudget).join('; ');
  return [`the drain of ${name} may not end: ${budgets}. ${limitOf(policy)}`];
}

function limitOf({ drain, stepDeadlines }: DrainRules): string {
  if (drain.byWork === true)
    return 'The Job cordons the node, and asks for the evictions for as long as `spec.drain.timeout` of the Plan says';
  const asks = 'Refit cordons the node, and asks for the evictions';
  if (drain.onDeadline === 'wait' || !Number.isFinite(stepDeadlines.drain))
    return `${asks} until the budget allows them. This drain has no deadline, so the node stays cordoned until then, or until \`refit abort\``;
  const limit = formatDuration(stepDeadlines.drain);
  return `${asks} for at most ${limit} (\`deadlines.drain\`), because an operator may change the budget. After that, ${AT_DEADLINE[drain.onDeadline]}`;
}

const AT_DEADLINE: Readonly<Record<Exclude<DrainPolicy['onDeadline'], 'wait'>, string>> = {
  stop: 'Refit uncordons the node, and the plan stops',
  skip: 'Refit uncordons the node, and the node has failed',
  skipNode: 'Refit uncordons the node, and leaves it out',
  proceed: 'the work on the node goes on with the pods that are left',
};
