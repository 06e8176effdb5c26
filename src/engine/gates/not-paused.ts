/** Gate: nothing starts while the policy says so; what is in flight finishes. */
import type { Controls } from '../model/controls.ts';
import { because } from '../model/reasons.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { PASS, type Verdict } from './types.ts';

interface PauseInput {
  readonly policy: RolloutPolicy;
  readonly controls: Controls;
}

export const notPaused = {
  name: 'not-paused',
  ofRollout: true,
  evaluate({ policy: { paused, name }, controls }: PauseInput): Verdict {
    if (controls.paused) {
      const reason = because('Paused', 'the plan is paused: nothing new starts until refit resume');
      return { kind: 'wait', reason, since: controls.pausedSince };
    }
    if (!paused) return PASS;
    return { kind: 'wait', reason: because('Paused', `UpgradePolicy ${name} has spec.paused: nothing new starts`) };
  },
};
