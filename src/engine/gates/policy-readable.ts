/** Gate: no target starts while the policy cannot be read, because the policy may forbid the start. */
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
