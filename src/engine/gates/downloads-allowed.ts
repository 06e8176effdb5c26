/** Gate: downloads are as the policy asks for, of a plan or under a policy that was changed since the plan began, too. */

import { because } from '../model/reasons.ts';
import { payloadProblems } from '../policy/payload-rules.ts';
import { type Gate, PASS } from './types.ts';

export const downloadsAllowed: Gate = {
  name: 'downloads-allowed',
  ofRollout: true,
  evaluate({ stage, policy }) {
    const problems = payloadProblems([stage], policy);
    if (problems.length === 0) return PASS;
    const reason = because('Unverified', problems.map(({ message }) => message).join('; '));
    return {
      kind: 'wait',
      reason,
      ends: 'the plan has what the policy asks of downloads, or the policy asks for less',
    };
  },
};
