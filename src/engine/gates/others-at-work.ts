/** Gate: a target waits while another tool works on its node, if the policy coordinates with that tool. */
import { type Gate, PASS, wait } from './types.ts';

export const othersAtWork: Gate = {
  name: 'others-at-work',
  evaluate({ target: { key, name }, targets, policy: { coordinate = [] } }) {
    if (coordinate.length === 0) return PASS;
    const work = targets.otherWorkOn(key).find(({ tool }) => coordinate.includes(tool));
    return work ? wait('OtherToolAtWork', `${name}: ${work.message}`, work.ends) : PASS;
  },
};
