/**
 * Gate: every API server must be ready before a controller starts, as in api-servers-ready.ts. If a policy says so, the
 * plan ends instead of waiting. A controller that goes back does not wait for its own API server, because its earlier
 * version may be what makes this server ready again. So it goes back before the controllers whose API servers are ready.
 */
import { answered } from '../model/asked.ts';
import { workOf } from '../model/rollout.ts';
import { apiServersReady } from './api-servers-ready.ts';
import type { Gate, GateInput } from './types.ts';

/**
 * This gate needs no `mayRefusePlan`: every controller gets the same answer, so the answer for the first controller
 * decides.
 */
export const apiServersReadyAtStart: Gate = {
  name: apiServersReady.name,
  evaluate(input) {
    const verdict = apiServersReady.evaluate(withoutOwn(input));
    if (verdict.kind !== 'wait' || input.policy.endsNotReady !== true) return verdict;
    // With any other code, nobody knows yet whether the API servers are ready, so the plan waits.
    if (verdict.reason.code !== 'ControlPlaneNotReady') return verdict;
    return { kind: 'stop', reason: verdict.reason, ofPlan: true };
  },
};

/** Returns the input without the answer of the API server of a target that goes back. */
function withoutOwn(input: GateInput): GateInput {
  const { rollout, stage, target, cluster } = input;
  const { controlPlane } = cluster;
  if (controlPlane.kind !== 'answered' || workOf(rollout, stage) !== 'roll-back') return input;
  const others = controlPlane.answer.filter(({ name }) => name !== target.name);
  return { ...input, cluster: { ...cluster, controlPlane: answered(others) } };
}
