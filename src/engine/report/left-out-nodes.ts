/**
 * Reports nodes that joined after their plan began and are not included in it. Each node is reported once for every
 * reason.
 */

import { listedSentences } from '../../util/phrases.ts';
import type { Assessment } from '../assess/assess.ts';
import { joinedNodes } from '../assess/joined-targets.ts';
import { because, type Reason } from '../model/reasons.ts';

/** Returns a memory of the left-out nodes that were reported. The memory is for one term of leadership. */
export function leftOutMemory() {
  const told = new Map<string, ReadonlySet<string>>();
  return {
    /** Returns one reason about the nodes that are left out and were not left out at the last call; undefined if there are none. */
    at(key: string, assessment: Assessment): Reason | undefined {
      const before = told.get(key) ?? new Set();
      const messages = joinedNodes(assessment)
        .filter(({ isIncluded }) => !isIncluded)
        .map(({ reason }) => reason.message);
      told.set(key, new Set(messages));
      const fresh = messages.filter((message) => !before.has(message));
      return fresh.length === 0 ? undefined : because('NodeLeftOut', listedSentences(fresh));
    },
    forget: (key: string) => told.delete(key),
  };
}
