/** Gate: nothing starts while the policy says so; what is in flight finishes. */
import type { Orders } from '../orders.ts';
import type { CampaignPolicy } from '../policy/campaign-policy.ts';
import { because } from '../reasons.ts';
import { PASS, type Verdict } from './types.ts';

interface PauseInput {
  readonly policy: CampaignPolicy;
  readonly orders: Orders;
}

export const notPaused = {
  name: 'not-paused',
  ofCampaign: true,
  evaluate({ policy: { paused, name }, orders }: PauseInput): Verdict {
    if (orders.paused) {
      const reason = because('Paused', 'the plan is paused: nothing new starts until refit resume');
      return { kind: 'wait', reason, since: orders.pausedSince };
    }
    if (!paused) return PASS;
    return { kind: 'wait', reason: because('Paused', `UpgradePolicy ${name} has spec.paused: nothing new starts`) };
  },
};
