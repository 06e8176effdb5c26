/** Gate: a policy may pin nodes to a version. A plan with another version continues with the other nodes. */
import { pinAgainst, pinnedSentence } from './pins.ts';
import { type Gate, PASS, wait } from './types.ts';

export const notPinned: Gate = {
  name: 'not-pinned',
  isOfTargetAlone: true,
  evaluate({ stage, target: { name }, facts, policy }) {
    const pin = pinAgainst(policy, stage, facts);
    if (pin === undefined) return PASS;
    const field = `spec.versions.pin[${pin.index}]`;
    if (pin.conflict !== undefined)
      return wait(
        'PolicyUnreadable',
        `UpgradePolicy ${policy.name}: ${field} and pin[${pin.conflict}] select ${name} with different versions; each node may have one`,
        'the policy pins the node to one version',
      );
    return wait(
      'Pinned',
      pinnedSentence(name, pin, stage, policy),
      `the pin of UpgradePolicy ${policy.name} is removed or allows ${stage.version}`,
    );
  },
};
