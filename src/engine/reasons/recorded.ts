/** Reads what a reason is about where a record is read, because a record has only the code and the sentence. */
import { ownMember } from '../../util/own-member.ts';
import type { Reason, ReasonCode, ReasonDetails, RolloutReason } from '../model/reasons.ts';
import type { Rollout } from '../model/rollout.ts';
import { readSubject } from './about-target.ts';
import { readRefusedDownloads } from './downloads.ts';
import { readCheckFailure } from './health-check.ts';
import { readHookFailure } from './hook.ts';
import { readRefusedVersions } from './refused-version.ts';

/**
 * Returns the recorded reason with its details. If the record has no code, the reason has the usual code of a failure,
 * and the sentence says which code is right. Details that are known already are not read again.
 */
export function recordedReason(reason: Reason): Reason {
  if (reason.details !== undefined) return reason;
  if (reason.code === 'TargetFailed')
    return readHookFailure(reason) ?? readCheckFailure(reason) ?? reason;
  const details = detailsIn(reason);
  return details === undefined ? reason : { ...reason, details };
}

/**
 * Returns the rollout with what its recorded reason is about: the details, and the names of targets. The code stays as
 * it is recorded. Every rollout that is read from a record goes through this function, and decisions read only the data.
 */
export function withReasonRead(rollout: Rollout): Rollout {
  const { reason, stages } = rollout;
  if (reason === undefined) return rollout;
  const details = reason.details ?? detailsIn(reason);
  const about = reason.about ?? subjectIn(stages, reason);
  const isKnown = details === reason.details && about === reason.about;
  return isKnown ? rollout : { ...rollout, reason: { ...reason, about, details } };
}

function subjectIn(stages: Rollout['stages'], { message }: Reason): RolloutReason['about'] {
  const targets = stages.flatMap((stage) => stage.targets);
  const subject = readSubject(targets, message);
  return subject === undefined ? undefined : [subject];
}

/** Returns the details that the sentence of a reason has. */
type DetailsReader = (reason: Reason) => Reason['details'];

const ofVersions: DetailsReader = ({ message }) => ({ versions: readRefusedVersions(message) });

/** The readers of all codes whose sentences have details. */
const READERS: Partial<Record<ReasonCode, DetailsReader>> = {
  HealthCheckFailing: (reason) => readCheckFailure(reason)?.details,
  HookFailed: (reason) => readHookFailure(reason)?.details,
  // No plan records this reason: as long as the hook has failed, it is shown as a wait.
  PlanHookFailed: () => undefined,
  Unverified: ({ message }) => ({ downloads: readRefusedDownloads(message) }),
  SkippedMinor: ofVersions,
  Downgrade: ofVersions,
  KubeletAhead: ofVersions,
  KubeletBehind: ofVersions,
} satisfies Record<keyof ReasonDetails, DetailsReader>;

function detailsIn(reason: Reason): Reason['details'] {
  return ownMember(READERS, reason.code)?.(reason);
}

/** Returns what a record says of the reason. It has no room for the data, which are read from the sentence again. */
export function toRecord({ code, message }: Reason): Reason {
  return { code, message };
}
