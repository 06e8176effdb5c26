/** Gate: no target starts while the plan or its policy is paused. Nodes in progress finish. */
import type { PlanFacts } from '../model/snapshot.ts';
import { type GateInput, PASS, type Verdict, wait } from './types.ts';

interface Input extends Pick<GateInput, 'policy'> {
  readonly plan: Pick<PlanFacts, 'controls'>;
}

export const notPaused = {
  name: 'not-paused',
  ofRollout: true,
  evaluate({ policy: { paused, name, heldBy }, plan: { controls } }: Input): Verdict {
    if (heldBy !== undefined)
      return wait('Paused', `${heldBy} is paused: nothing new starts`, `${heldBy} is resumed`);
    if (controls.paused) {
      const { pauseReason: reason } = controls;
      const why = reason === undefined ? '' : ` (${reason})`;
      const message = `the plan is paused${why}: nothing new starts until it is resumed`;
      const ends =
        'the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)';
      return wait('Paused', message, ends, { since: controls.pausedSince });
    }
    if (!paused) return PASS;
    const message = `UpgradePolicy ${name} has spec.paused: nothing new starts`;
    const command = `kubectl patch upgradepolicy ${name} --type=merge -p '{"spec":{"paused":false}}'`;
    return wait('Paused', message, `UpgradePolicy ${name} is no longer paused (${command})`);
  },
};
