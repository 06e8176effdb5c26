/**
 * Gate: before the first target starts, no host of the plan may be known to be unable to run its version. The nodes report this
 * themselves, so their report only delays the plan.
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
