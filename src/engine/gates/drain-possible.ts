/**
 * Gate: a target does not start if the options of its drain forbid to evict one of its pods. If the policy asks for it,
 * a target also waits for budgets that allow no disruption. By default such a drain starts, because operators such as
 * those of databases change their budgets only after they see the cordon or the eviction.
 */
import { BUDGET_ENDS, describeBlockingBudget } from '../../drain/budgets.ts';
import { describeRefusedPods, liftOf } from '../../drain/pods.ts';
import { untilAsked } from '../model/asked.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds until a blocked drain is previewed again, because no watch shows budgets and pods. */
const RECHECK_MS = 5000;
const MOST_PODS = 5;

export const drainPossible: Gate = {
  name: 'drain-possible',
  probesEachTarget: true,
  evaluate({ facts: { drainPreview, node }, target: { name }, policy }) {
    if (!node || drainPreview.kind === 'never' || !policy.drain.enabled) return PASS;
    if (policy.drain.cordonOnly === true || policy.drain.onDeadline === 'proceed') return PASS;
    if (drainPreview.kind === 'unasked') {
      const probe = { kind: 'drain-preview', node: node.name } as const;
      const message = `checking what blocks a drain of ${name}`;
      return wait('DrainPreviewUnknown', message, 'the API server answers', { probe });
    }
    if (drainPreview.kind === 'unanswered') return { kind: 'wait', ...untilAsked(drainPreview) };
    const { obstacles, refused } = drainPreview.answer;
    if (policy.drain.waitsForBudgets === true && obstacles.length > 0) {
      const message = `${name} cannot be drained: ${obstacles.map(describeBlockingBudget).join('; ')}`;
      return wait('DrainBlocked', message, BUDGET_ENDS, { recheckMs: RECHECK_MS });
    }
    if (refused.length === 0) return PASS;
    const { options } = policy.drain;
    const message = `${name} cannot be drained: ${describeRefusedPods(refused, options, MOST_PODS)}`;
    const { of, settings } = liftOf(refused, options);
    const ends = `those pods are gone, or ${of} has ${settings}`;
    return wait('DrainRefused', message, ends, { recheckMs: RECHECK_MS });
  },
};
