/** Gate: as the verifier of the same name, but a policy may end the plan instead of letting it wait. */
import { apiServersReady } from './api-servers-ready.ts';
import type { Gate } from './types.ts';

/** It does not say that it may refuse the plan: every controller gets the same answer, so the first one that is asked decides. */
export const apiServersReadyAtStart: Gate = {
  name: apiServersReady.name,
  evaluate(input) {
    const verdict = apiServersReady.evaluate(input);
    if (verdict.kind !== 'wait' || input.policy.endsNotReady !== true) return verdict;
    // Whether the API servers are ready may still be unknown.
    if (verdict.reason.code !== 'ControlPlaneNotReady') return verdict;
    return { kind: 'stop', reason: verdict.reason, ofPlan: true };
  },
};
