/**
 * Defines what people decided about one run of a plan: approved waves, and health checks that may fail. These decisions
 * are read from the NodeRollout.
 */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { recordsIn } from '../../util/json.ts';
import type { EarlierRun } from './earlier-runs.ts';
import type { Rollout } from './rollout.ts';

interface DecisionOfPerson {
  /** The user who made the decision, as the entry says. Only the admission policy of NodeRollouts makes sure that this is the real user. */
  readonly by: string;
  /** The run to which the entry applies, as `runOf` names it. */
  readonly run: string;
  /** The time in RFC 3339 format. */
  readonly at?: string;
  readonly reason?: string;
}

export interface Approval extends DecisionOfPerson {
  /** The number of the wave; the first wave is 1. */
  readonly wave: number;
}

export interface Acceptance extends DecisionOfPerson {
  /** The name of the health check. */
  readonly check: string;
  /** The time at which the acceptance ends, in RFC 3339; undefined if the acceptance ends with the run. */
  readonly until?: string;
}

export interface DecisionsOfPeople {
  /** The reference of the plan, as commands accept it. */
  readonly plan: string;
  /** The namespace and the name of the NodeRollout. */
  readonly place: string;
  readonly exists: boolean;
  readonly approvals: readonly Approval[];
  readonly accepted: readonly Acceptance[];
  /**
   * The versions that nodes ran before earlier runs. Leaders recorded them in the status of the NodeRollout. Absent if
   * nothing is recorded.
   */
  readonly earlierRuns?: readonly EarlierRun[];
  /** The recorded runs, the newest first; absent if there are none. */
  readonly history?: readonly NodeRolloutRun[];
}

/** Returns the name of the run. No other run has this name, even if the plan is deleted and created again. */
export function runOf({ source, id, run }: Pick<Rollout, 'source' | 'id' | 'run'>): string {
  return [source.uid, id, run].filter((part) => part !== undefined).join('/');
}

/** Returns the valid approvals in this list. Anything else that somebody wrote into it is left out. */
export function approvalsIn(list: unknown): Approval[] {
  return recordsIn(list).flatMap((entry) => {
    const { wave } = entry;
    const decision = decisionIn(entry);
    const isNumber = typeof wave === 'number' && Number.isSafeInteger(wave) && wave >= 1;
    return isNumber && decision ? { wave, ...decision } : [];
  });
}

/** Returns the valid acceptances in this list. Anything else that somebody wrote into it is left out. */
export function acceptancesIn(list: unknown): Acceptance[] {
  return recordsIn(list).flatMap((entry) => {
    const { check, until } = entry;
    const decision = decisionIn(entry);
    if (typeof check !== 'string' || check === '' || !decision) return [];
    if (until === undefined) return { check, ...decision };
    const isTime = typeof until === 'string' && !Number.isNaN(Date.parse(until));
    return isTime ? { check, ...decision, until } : [];
  });
}

function decisionIn({
  by,
  run,
  at,
  reason,
}: Record<string, unknown>): DecisionOfPerson | undefined {
  if (typeof by !== 'string' || by === '' || typeof run !== 'string' || run === '')
    return undefined;
  return {
    by,
    run,
    ...(typeof at === 'string' ? { at } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
  };
}

/** Returns the approval of the wave with this number in this run; undefined if nobody has approved it. */
export function approvalOf(
  { approvals }: Pick<DecisionsOfPeople, 'approvals'>,
  rollout: Rollout,
  wave: number,
): Approval | undefined {
  const run = runOf(rollout);
  return approvals.find((each) => each.wave === wave && each.run === run);
}

/** Returns the acceptance of the health check with this name in this run at `now`; undefined if its failure is not accepted. */
export function acceptanceOf(
  { accepted }: Pick<DecisionsOfPeople, 'accepted'>,
  run: string,
  check: string,
  now: number,
): Acceptance | undefined {
  return accepted.find(
    (each) =>
      each.check === check &&
      each.run === run &&
      (each.until === undefined || now < Date.parse(each.until)),
  );
}
