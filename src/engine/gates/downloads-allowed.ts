/**
 * Gate: checks again that the downloads meet the rules of the policy, because the plan or the policy may have changed. It
 * also checks the images. A plan is never refused because of an image: it waits here.
 */
import { combined } from '../reasons/combined.ts';
import { payloadProblems } from '../reasons/downloads.ts';
import { imageProblems } from '../reasons/images.ts';
import { type Gate, PASS, waitFor } from './types.ts';

export const downloadsAllowed: Gate = {
  name: 'downloads-allowed',
  ofRollout: true,
  evaluate({ stage, policy }) {
    const downloads = payloadProblems([stage], policy);
    const problems = [...downloads, ...imageProblems(stage, policy)];
    const reason = combined(problems, problems.map(({ message }) => message).join('; '));
    if (reason === undefined) return PASS;
    const what = downloads.length > 0 ? 'the downloads' : 'the images';
    const ends = `${what} of the plan meet the rules of the UpgradePolicy, or the rules are relaxed`;
    return waitFor(reason, ends);
  },
};
