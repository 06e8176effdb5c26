/**
 * Gate: a target does not start if the options of its drain forbid to evict one of its pods. If the policy asks for it,
 * a target also waits for budgets that allow no disruption. By default such a drain starts, because operators such as
 * those of databases change their budgets only after they see the cordon or the eviction.
 */
import { BUDGET_ENDS, describeBlockingBudget } from '../../drain/budgets.ts';
import { describeRefusedPods, liftsOf } from '../../drain/pods.ts';
import { isUnanswered, untilAsked } from '../model/decision.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds until a blocked drain is previewed again, because no watch shows budgets and pods. */
const RECHECK_MS = 5000;
const MOST_PODS = 5;

export const drainPossible: Gate = {
  name: 'drain-possible',
  probesEachTarget: true,
  evaluate({ facts: { drainPreview, node }, target: { name }, policy }) {
    if (!node || drainPreview === undefined || !policy.drain.enabled) return PASS;
    if (policy.drain.cordonOnly === true || policy.drain.onDeadline === 'proceed') return PASS;
    if (drainPreview === 'unasked') {
      const probe = { kind: 'drain-preview', node: node.name } as const;
      const message = `checking what blocks a drain of ${name}`;
      return wait('DrainPreviewUnknown', message, 'the API server answers', { probe });
    }
    if (isUnanswered(drainPreview)) return { kind: 'wait', ...untilAsked(drainPreview) };
    if (policy.drain.waitsForBudgets === true && drainPreview.obstacles.length > 0) {
      const message = `${name} cannot be drained: ${drainPreview.obstacles.map(describeBlockingBudget).join('; ')}`;
      return wait('DrainBlocked', message, BUDGET_ENDS, { recheckMs: RECHECK_MS });
    }
    if (drainPreview.refused.length === 0) return PASS;
    const { refused } = drainPreview;
    const message = `${name} cannot be drained: ${describeRefusedPods(refused, MOST_PODS)}`;
    const ends = `those pods are gone, or an UpgradePolicy has ${liftsOf(refused)}`;
    return wait('DrainRefused', message, ends, { recheckMs: RECHECK_MS });
  },
};
