/** Reads the details of a reason again where a record is read, because a record has only the sentence. */
import type { Reason } from '../model/reasons.ts';
import { readCheckFailure } from './health-check.ts';
import { readHookFailure } from './hook.ts';

/**
 * Returns the recorded reason with its details. If the record has no code, the reason has the usual code of a failure,
 * and the sentence says which code is right.
 */
export function recordedReason(reason: Reason): Reason {
  const { code } = reason;
  const hasNoCode = code === 'TargetFailed';
  const ofHook = hasNoCode || code === 'HookFailed' ? readHookFailure(reason) : undefined;
  const ofCheck = hasNoCode || code === 'HealthCheckFailing' ? readCheckFailure(reason) : undefined;
  return ofHook ?? ofCheck ?? reason;
}
