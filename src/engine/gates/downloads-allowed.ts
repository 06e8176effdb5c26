/** Gate: checks again that the downloads meet the rules of the policy, because the plan or the policy may have changed. */
import { combined } from '../reasons/combined.ts';
import { payloadProblems } from '../reasons/downloads.ts';
import { type Gate, PASS, waitFor } from './types.ts';

export const downloadsAllowed: Gate = {
  name: 'downloads-allowed',
  ofRollout: true,
  evaluate({ stage, policy }) {
    const problems = payloadProblems([stage], policy);
    const reason = combined(problems, problems.map(({ message }) => message).join('; '));
    if (reason === undefined) return PASS;
    const ends =
      'the downloads of the plan meet the rules of the UpgradePolicy, or the rules are relaxed';
    return waitFor(reason, ends);
  },
};
