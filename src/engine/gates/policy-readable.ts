/** Gate: a policy that cannot be read holds everything back, since nobody knows what it would have forbidden. */

import { because } from '../model/reasons.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { PASS, type Verdict } from './types.ts';

export const policyReadable = {
  name: 'policy-readable',
  ofRollout: true,
  evaluate({ policy: { problems } }: { readonly policy: RolloutPolicy }): Verdict {
    if (problems.length === 0) return PASS;
    const message = problems.map(({ message }) => message).join('; ');
    return { kind: 'wait', reason: because('PolicyUnreadable', message) };
  },
};
