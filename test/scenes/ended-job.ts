/** The status of a Job that has ended, as the Job controller writes it and an API server accepts it. */
import type { Job } from '../../src/kube/resources.ts';
import { WHY_NO_SUCCESS_CRITERIA } from '../testenv/since.ts';

/** The condition that the Job controller writes before the last one: it names what the Job is about to become. */
const BEFORE = { Complete: 'SuccessCriteriaMet', Failed: 'FailureTarget' } as const;
/** The Job controller of an older Kubernetes writes only the last condition, and its API server refuses the other one. */
const WRITES_BEFORE = WHY_NO_SUCCESS_CRITERIA === undefined;
const TOO_OFTEN = {
  reason: 'BackoffLimitExceeded',
  message: 'Job has reached the specified backoff limit',
} as const;

/** `at` is the time of the end in RFC 3339. By default, a Job has failed because its pods failed too often. */
export function endedJob(
  { metadata, status }: Job,
  result: 'Complete' | 'Failed',
  at: string,
  whyFailed: { readonly reason: string; readonly message: string } = TOO_OFTEN,
) {
  const why = result === 'Failed' ? whyFailed : {};
  const types = [...(WRITES_BEFORE ? [BEFORE[result]] : []), result];
  const conditions = types.map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: at,
    ...why,
  }));
  const counts = result === 'Complete' ? { succeeded: 1, completionTime: at } : { failed: 1 };
  const startTime = status?.startTime ?? metadata.creationTimestamp;
  return { ...status, ...counts, startTime, conditions };
}
