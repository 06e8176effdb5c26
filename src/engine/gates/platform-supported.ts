/** Gate: the plan must hold a payload for the target's platform. */
import { type Gate, PASS, stop } from './types.ts';

export const platformSupported: Gate = {
  name: 'platform-supported',
  evaluate({ facts, stage, target }) {
    if (!stage.payloads) return PASS;
    if (facts.platform === undefined) {
      const message = `${target.name} lacks the labels kubernetes.io/os and kubernetes.io/arch`;
      return stop('PlatformUnknown', message);
    }
    if (stage.payloads[facts.platform]) return PASS;
    const known = Object.keys(stage.payloads).join(', ') || 'none';
    const message = `${target.name} is ${facts.platform}; the plan has platforms for ${known}`;
    return stop('PlatformUnsupported', message);
  },
};
