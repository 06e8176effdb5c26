/**
 * Gate and verifier: before and after the upgrade of a controller, every API server of the cluster must be ready, even
 * if the plan does not list it.
 */
import { untilAsked } from '../model/asked.ts';
import { isOfControlPlane } from '../model/control-plane.ts';
import { type Gate, PASS, wait } from './types.ts';

/** Milliseconds until the API servers are asked again, because no watch shows when one becomes ready. */
const RECHECK_MS = 1000;
const ENDS = 'every API server answers that it is ready';

export const apiServersReady: Gate = {
  name: 'api-servers-ready',
  evaluate({ stage, facts, cluster: { controlPlane } }) {
    const { serverChecks } = stage;
    const isServer =
      stage.role === 'controller' || (serverChecks !== undefined && isOfControlPlane(facts));
    if (!isServer || controlPlane.kind === 'never') return PASS;
    const ends = serverChecks === undefined ? ENDS : `${ENDS}, or ${serverChecks.escape}`;
    if (controlPlane.kind === 'unasked')
      return wait('ControlPlaneUnknown', 'asking every API server', ends, {
        probe: { kind: 'control-plane' },
      });
    if (controlPlane.kind === 'unanswered')
      return { kind: 'wait', ...untilAsked(controlPlane), ends };
    const down = controlPlane.answer.filter(({ ready }) => !ready);
    if (down.length === 0) return PASS;
    const list = down.map(({ name, detail }) => `${name} (${detail ?? 'not ready'})`).join(', ');
    return wait('ControlPlaneNotReady', `the API server of ${list} is not ready`, ends, {
      recheckMs: RECHECK_MS,
    });
  },
};
