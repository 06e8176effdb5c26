/** Gate and verifier: for controllers, every API server of the cluster must be ready, in the plan or not. */
import { isUnanswered, untilAsked } from '../model/decision.ts';
import { because } from '../model/reasons.ts';
import { type Gate, PASS } from './types.ts';

/** No watch shows when an API server becomes ready. */
const RECHECK_MS = 1000;
const ENDS = 'every API server answers that it is ready';

export const apiServersReady: Gate = {
  name: 'api-servers-ready',
  evaluate({ stage, controlPlane }) {
    if (stage.role !== 'controller') return PASS;
    if (!controlPlane) {
      const reason = because('ControlPlaneUnknown', 'asking every API server');
      return { kind: 'wait', reason, ends: ENDS, probe: { kind: 'control-plane' } };
    }
    if (isUnanswered(controlPlane)) return { kind: 'wait', ...untilAsked(controlPlane) };
    const down = controlPlane.filter(({ ready }) => !ready);
    if (down.length === 0) return PASS;
    const list = down.map(({ name, detail }) => `${name} (${detail ?? 'not ready'})`).join(', ');
    const message = `the API server of ${list} is not ready`;
    return { kind: 'wait', reason: because('ControlPlaneNotReady', message), ends: ENDS, recheckMs: RECHECK_MS };
  },
};
