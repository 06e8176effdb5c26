/** Remembers the reasons for which the targets of one run failed. The record of a rollout has one reason for all its targets. */
import { ownMember } from '../../util/own-member.ts';
import type { Reason } from './reasons.ts';
import type { Rollout } from './rollout.ts';
import { qualifiedRunId } from './runs.ts';

/** The reasons for which targets of one run failed. */
export interface FailureReasons {
  /** The run, as `<uid of the plan>/<id of the run>`. */
  readonly run: string;
  /** The reasons by the name of the target. No message contains the name of its target. */
  readonly reasons: Readonly<Record<string, Reason>>;
}

/** Returns the run of the rollout, as `<uid of the plan>/<id of the run>`. */
export function runNameOf({ source, id }: Pick<Rollout, 'source' | 'id'>): string {
  return qualifiedRunId({ planUid: source.uid, id });
}

/** Returns what is remembered about the failure of the target in the run of the rollout; undefined if nothing is. */
export function rememberedFailure(
  known: FailureReasons | undefined,
  rollout: Pick<Rollout, 'source' | 'id'>,
  name: string,
): Reason | undefined {
  return known?.run === runNameOf(rollout) ? ownMember(known.reasons, name) : undefined;
}

/** Returns `known` with the `added` reasons. Reasons of another run are left out. */
export function withFailures(
  known: FailureReasons | undefined,
  added: FailureReasons,
): FailureReasons {
  const earlier = known?.run === added.run ? known.reasons : {};
  return { ...added, reasons: { ...earlier, ...added.reasons } };
}
