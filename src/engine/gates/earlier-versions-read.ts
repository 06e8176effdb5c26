/**
 * Explains the wait of a plan that rolls a run back. The plan waits until the leader has read which versions the nodes
 * ran before that run.
 */
import { untilAsked } from '../model/asked.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { type Waiting, wait } from './types.ts';

/** Returns the wait. If the API server did not answer, the leader asks again after a pause. */
export function untilEarlierVersionsAreRead(decisions: Snapshot['plan']['decisions']): Waiting {
  if (decisions.kind === 'unanswered') return { kind: 'wait', ...untilAsked(decisions) };
  return wait(
    'PreconditionsUnknown',
    'reading which versions the nodes ran before',
    'the API server answers',
    { isPassing: true, probe: { kind: 'decisions' } },
  );
}
