/** Gate: nothing starts while the policy says so; what is in flight finishes. */
import type { CampaignPolicy } from '../policy/campaign-policy.ts';
import { because } from '../reasons.ts';
import { PASS, type Verdict } from './types.ts';

export const notPaused = {
  name: 'not-paused',
  evaluate({ policy: { paused, name } }: { readonly policy: CampaignPolicy }): Verdict {
    if (!paused) return PASS;
    return { kind: 'wait', reason: because('Paused', `UpgradePolicy ${name} has spec.paused: nothing new starts`) };
  },
};
