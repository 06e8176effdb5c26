/** Says what a plan that rolls a run back waits for while nobody has read what nodes ran before that run. */
import { isUnanswered, type Snapshot, untilAsked } from '../model/decision.ts';
import { type Waiting, wait } from './types.ts';

/** Returns the wait. A plan that waits for an unanswered question is asked about again later. */
export function untilEarlierVersionsAreRead(decisions: Snapshot['decisions']): Waiting {
  if (isUnanswered(decisions)) return { kind: 'wait', ...untilAsked(decisions) };
  return wait(
    'PreconditionsUnknown',
    'reading which versions the nodes ran before',
    'the API server answers',
    { isPassing: true, probe: { kind: 'decisions' } },
  );
}
