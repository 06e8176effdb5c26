/**
 * Gate: before the first target starts, the plan waits if a host of the plan is known to be unable to run the version
 * of the plan. The gate only delays the plan. The nodes themselves report that they cannot run the version.
 */
import { listed, listedSentences } from '../../util/phrases.ts';
import { type Gate, PASS, wait } from './types.ts';

export const hostsFit: Gate = {
  name: 'hosts-fit',
  ofRollout: true,
  evaluate({ unfit }) {
    if (unfit.size === 0) return PASS;
    const texts = [...unfit].map(([why, names]) => `${listed([...names])}: ${why}`);
    const ends =
      'the agents there report that the problem is fixed, their annotations are removed because no agent runs there any more, or the plan leaves those nodes out';
    return wait('HostUnfit', listedSentences(texts), ends);
  },
};
