/**
 * Gate: every API server must be ready before a controller starts, as in api-servers-ready.ts. If a policy says so, the
 * plan ends instead of waiting.
 */
import { apiServersReady } from './api-servers-ready.ts';
import type { Gate } from './types.ts';

/**
 * This gate needs no `mayRefusePlan`: every controller gets the same answer, so the answer for the first controller
 * decides.
 */
export const apiServersReadyAtStart: Gate = {
  name: apiServersReady.name,
  evaluate(input) {
    const verdict = apiServersReady.evaluate(input);
    if (verdict.kind !== 'wait' || input.policy.endsNotReady !== true) return verdict;
    // With any other code, nobody knows yet whether the API servers are ready, so the plan waits.
    if (verdict.reason.code !== 'ControlPlaneNotReady') return verdict;
    return { kind: 'stop', reason: verdict.reason, ofPlan: true };
  },
};
