/** Gate: nothing starts under an unreadable policy, because that policy may forbid it. */
import { type GateInput, PASS, type Verdict, wait } from './types.ts';

export const policyReadable = {
  name: 'policy-readable',
  ofRollout: true,
  evaluate({ policy: { name, problems } }: Pick<GateInput, 'policy'>): Verdict {
    if (problems.length === 0) return PASS;
    const message = problems.map(({ message }) => message).join('; ');
    return wait('PolicyUnreadable', message, `UpgradePolicy ${name} is corrected`);
  },
};
