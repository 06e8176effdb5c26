/** Gate: a drain that could never end is not begun, so that no node is cordoned for nothing. */
import { describeBlockingBudget } from '../../drain/budgets.ts';
import type { RefusedPod } from '../../drain/pods.ts';
import { because } from '../model/reasons.ts';
import { isUnanswered, untilAsked } from '../observe/probe-backoff.ts';
import { type Gate, PASS } from './types.ts';

/** Budgets change seldom, and pods come and go: what stands in the way is looked at again. */
const RECHECK_MS = 5000;
/** What ends a wait for a PodDisruptionBudget. */
export const BLOCKED_ENDS = 'the budget lets its pods go: run more replicas of them, or change it';
const REFUSED_ENDS = 'those pods are gone, or spec.drain of the policy lets them be evicted';
/** Pods that are told one by one. */
const MOST_TOLD = 5;

export const drainPossible: Gate = {
  name: 'drain-possible',
  evaluate({ facts: { drainPreview, node }, target: { name }, policy }) {
    if (!node || drainPreview === undefined || !policy.drain.enabled) return PASS;
    if (drainPreview === 'unasked') {
      const reason = because('DrainPreviewUnknown', `looking at what a drain of ${name} would meet`);
      return {
        kind: 'wait',
        reason,
        ends: 'the API server answers',
        probe: { kind: 'drain-preview', node: node.name },
      };
    }
    if (isUnanswered(drainPreview)) return { kind: 'wait', ...untilAsked(drainPreview) };
    if (drainPreview.obstacles.length > 0) {
      const message = `${name} cannot be drained: ${drainPreview.obstacles.map(describeBlockingBudget).join('; ')}`;
      return { kind: 'wait', reason: because('DrainBlocked', message), ends: BLOCKED_ENDS, recheckMs: RECHECK_MS };
    }
    if (drainPreview.refused.length === 0) return PASS;
    const message = `${name} cannot be drained: ${refusals(drainPreview.refused)}`;
    return { kind: 'wait', reason: because('DrainRefused', message), ends: REFUSED_ENDS, recheckMs: RECHECK_MS };
  },
};

function refusals(refused: readonly RefusedPod[]): string {
  const told = refused.slice(0, MOST_TOLD).map(({ pod, reason }) => `${pod} ${reason}`);
  const rest = refused.length - told.length;
  return [...told, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}
