/** The effects of a policy on plans whose nodes are neither tried again by a policy nor keep a previous binary. */
import type { PolicyEffects } from '../../cli/contract/policy-effects.ts';

export const NO_EFFECTS: PolicyEffects = {
  retry: { hasEffect: false, instead: undefined },
  keepPrevious: { hasEffect: false, instead: undefined },
};
