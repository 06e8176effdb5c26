/** Gate: what the API server refused to write for a target is tried again after a pause; the others go on. */
import { type Gate, PASS } from './types.ts';

export const writeAllowed: Gate = {
  name: 'write',
  evaluate({ facts: { refusal } }) {
    if (!refusal) return PASS;
    const ends =
      'the API server allows the change: see its admission policies and webhooks, and the rights of Refit';
    return { kind: 'wait', reason: refusal.unanswered, ends, recheckMs: refusal.recheckMs };
  },
};
