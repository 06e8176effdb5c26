/**
 * Gate and verifier: before and after the upgrade of a controller, every API server of the cluster must be ready, even
 * if the plan does not list it.
 */
import { untilAsked } from '../model/asked.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds until the API servers are asked again, because no watch shows when one becomes ready. */
const RECHECK_MS = 1000;
const ENDS = 'every API server answers that it is ready';

export const apiServersReady: Gate = {
  name: 'api-servers-ready',
  evaluate({ stage, cluster: { controlPlane } }) {
    if (stage.role !== 'controller' || controlPlane.kind === 'never') return PASS;
    if (controlPlane.kind === 'unasked')
      return wait('ControlPlaneUnknown', 'asking every API server', ENDS, {
        probe: { kind: 'control-plane' },
      });
    if (controlPlane.kind === 'unanswered')
      return { kind: 'wait', ...untilAsked(controlPlane), ends: ENDS };
    const down = controlPlane.answer.filter(({ ready }) => !ready);
    if (down.length === 0) return PASS;
    const list = down.map(({ name, detail }) => `${name} (${detail ?? 'not ready'})`).join(', ');
    return wait('ControlPlaneNotReady', `the API server of ${list} is not ready`, ENDS, {
      recheckMs: RECHECK_MS,
    });
  },
};
