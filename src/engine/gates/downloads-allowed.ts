/** Gate: checks again that the downloads meet the rules of the policy, because the plan or the policy may have changed. */
import { payloadProblems } from '../reasons/downloads.ts';
import { type Gate, PASS, wait } from './types.ts';

export const downloadsAllowed: Gate = {
  name: 'downloads-allowed',
  ofRollout: true,
  evaluate({ stage, policy }) {
    const problems = payloadProblems([stage], policy);
    if (problems.length === 0) return PASS;
    const ends =
      'the downloads of the plan meet the rules of the UpgradePolicy, or the rules are relaxed';
    return wait('Unverified', problems.map(({ message }) => message).join('; '), ends);
  },
};
