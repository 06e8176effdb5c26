/** Gate: a policy that cannot be read holds everything back, since nobody knows what it would have forbidden. */
import type { CampaignPolicy } from '../policy/campaign-policy.ts';
import { because } from '../reasons.ts';
import { PASS, type Verdict } from './types.ts';

export const policyReadable = {
  name: 'policy-readable',
  ofCampaign: true,
  evaluate({ policy: { problems } }: { readonly policy: CampaignPolicy }): Verdict {
    if (problems.length === 0) return PASS;
    const message = problems.map(({ message }) => message).join('; ');
    return { kind: 'wait', reason: because('PolicyUnreadable', message) };
  },
};
