/** The rules for the status of a Job that has just finished. */
import { type Cause, cause } from '../failure.ts';
import type { ApiObject } from '../store.ts';

interface JobStatus {
  readonly startTime?: string;
  readonly completionTime?: string;
  readonly conditions?: readonly { readonly type?: string; readonly status?: string }[];
}

const statusOf = (job: ApiObject): JobStatus => job['status'] ?? {};

/** The condition that must be true together with the condition that finishes the Job. */
const BEFORE = { Complete: 'SuccessCriteriaMet', Failed: 'FailureTarget' } as const;

/** Returns the faults in the status of a Job that the change finishes. */
export function validateFinished(job: ApiObject, old: ApiObject): Cause[] {
  const { startTime, completionTime } = statusOf(job);
  const finished = (['Complete', 'Failed'] as const).filter(
    (type) => isTrue(job, type) && !isTrue(old, type),
  );
  return finished.flatMap((type) => [
    ...(type === 'Complete' && completionTime === undefined
      ? [cause.required('status.completionTime', 'completionTime is required for Complete jobs')]
      : []),
    ...(isTrue(job, BEFORE[type])
      ? []
      : [
          cause.invalidWithoutValue(
            'status.conditions',
            `cannot set ${type}=True condition without the ${BEFORE[type]}=true condition`,
          ),
        ]),
    ...(startTime === undefined
      ? [cause.required('status.startTime', 'startTime is required for finished job')]
      : []),
  ]);
}

function isTrue(job: ApiObject, wanted: string): boolean {
  const { conditions = [] } = statusOf(job);
  return conditions.some(({ type, status }) => type === wanted && status === 'True');
}
