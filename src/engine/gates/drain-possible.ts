/** Gate: a drain that could never end is not begun, so that no node is cordoned for nothing. */
import { because } from '../reasons.ts';
import { type Gate, PASS } from './types.ts';

/** Budgets change seldom, and pods come and go: what stands in the way is looked at again. */
const RECHECK_MS = 5000;

export const drainPossible: Gate = {
  name: 'drain-possible',
  evaluate({ facts: { outlook, node }, target: { name }, policy }) {
    if (!node || outlook === undefined || !policy.drain.enabled) return PASS;
    if (outlook === 'unasked') {
      const reason = because('OutlookUnknown', `looking at what a drain of ${name} would meet`);
      return { kind: 'wait', reason, inquiry: { kind: 'outlook', node: node.name } };
    }
    const [obstacle] = outlook.obstacles;
    if (obstacle) {
      const message = `${name} cannot be drained: ${obstacle.reason}`;
      return { kind: 'wait', reason: because('DrainBlocked', message), recheckMs: RECHECK_MS };
    }
    const [refused] = outlook.refused;
    if (!refused) return PASS;
    const message = `${name} cannot be drained: pod ${refused.pod} may not be evicted: ${refused.reason}`;
    return { kind: 'wait', reason: because('DrainRefused', message), recheckMs: RECHECK_MS };
  },
};
