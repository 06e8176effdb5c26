/** Gate: if the API server refused a write for a target, the write is tried again after a pause. Other targets continue. */
import { type Gate, PASS } from './types.ts';

export const writeAllowed: Gate = {
  name: 'write',
  evaluate({ facts: { refusal } }) {
    if (!refusal) return PASS;
    const ends =
      'the API server allows the change: see its admission policies and webhooks, and the rights of Refit';
    return {
      kind: 'wait',
      reason: refusal.reason,
      ends,
      recheckMs: refusal.recheckMs,
      keepsIntent: true,
    };
  },
};
