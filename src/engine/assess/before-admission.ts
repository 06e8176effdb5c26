/** Finds what a new plan must know before the leader admits or refuses it. */
import { untilEarlierVersionsAreRead } from '../gates/earlier-versions-read.ts';
import { type Waiting, wait } from '../gates/types.ts';
import { untilAsked } from '../model/asked.ts';
import { asksForEarlierVersions } from '../model/earlier-versions.ts';
import type { Snapshot } from '../model/snapshot.ts';

/** A wait of a whole plan, with the name under which people read it. */
export interface AdmissionWait extends Waiting {
  readonly gate: 'preconditions' | 'versions-follow';
}

/**
 * Returns the wait of a new plan: its preconditions are not checked, or it rolls a run back and the record of that run
 * is not read. Returns undefined if the plan waits for neither, or is not new.
 */
export function waitBeforeAdmission(snapshot: Snapshot): AdmissionWait | undefined {
  if (snapshot.rollout.phase !== 'new') return undefined;
  const unchecked = untilPreconditionsAreChecked(snapshot);
  if (unchecked) return { gate: 'preconditions', ...unchecked };
  if (!asksForEarlierVersions(snapshot)) return undefined;
  return { gate: 'versions-follow', ...untilEarlierVersionsAreRead(snapshot.plan.decisions) };
}

function untilPreconditionsAreChecked({ plan: { preconditions } }: Snapshot): Waiting | undefined {
  switch (preconditions.kind) {
    case 'unasked':
      return wait(
        'PreconditionsUnknown',
        'checking the preconditions of the plan',
        'the API server answers',
        { probe: { kind: 'preconditions' } },
      );
    case 'unanswered':
      return { kind: 'wait', ...untilAsked(preconditions) };
    case 'answered':
    case 'never':
      return undefined;
  }
}
