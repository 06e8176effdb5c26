/** Gate: the plan must hold a payload for the target's platform. */

import { ownMember } from '../../util/own-member.ts';
import { type Gate, PASS, stop } from './types.ts';

export const platformSupported: Gate = {
  name: 'platform-supported',
  evaluate({ facts, stage, target }) {
    if (!stage.payloads) return PASS;
    if (facts.platform === undefined)
      return stop(
        'PlatformUnknown',
        `${target.name} needs the labels kubernetes.io/os and kubernetes.io/arch, and lacks at least one of them: set them, or leave the node out of the plan`,
      );
    if (ownMember(stage.payloads, facts.platform)) return PASS;
    const known = Object.keys(stage.payloads).join(', ') || 'no platform';
    return stop(
      'PlatformUnsupported',
      `${target.name} is ${facts.platform}; the plan has downloads for ${known}: add the platform of the node to the plan, or leave the node out`,
    );
  },
};
