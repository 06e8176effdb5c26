/** Gate: nothing starts while the plan or its policy is paused. Nodes in progress finish. */
import { because } from '../model/reasons.ts';
import { type GateInput, PASS, type Verdict } from './types.ts';

export const notPaused = {
  name: 'not-paused',
  ofRollout: true,
  evaluate({ policy: { paused, name }, controls }: Pick<GateInput, 'policy' | 'controls'>): Verdict {
    if (controls.paused) {
      const reason = because('Paused', 'the plan is paused: nothing new starts until refit resume');
      return { kind: 'wait', reason, ends: 'the plan is resumed (refit resume)', since: controls.pausedSince };
    }
    if (!paused) return PASS;
    const reason = because('Paused', `UpgradePolicy ${name} has spec.paused: nothing new starts`);
    const command = `kubectl patch upgradepolicy ${name} --type=merge -p '{"spec":{"paused":false}}'`;
    return { kind: 'wait', reason, ends: `UpgradePolicy ${name} is no longer paused (${command})` };
  },
};
