/**
 * Says why a Job has no pod. Kubernetes tries again without end if a pod cannot be created, for example because its
 * ServiceAccount does not exist, and the Job itself does not say so.
 */
import { isRecord } from '../util/json.ts';
import { type Job, trueCondition } from './resources.ts';

/**
 * Returns a clause that follows the name of the Job, if Kubernetes has begun the Job but could not create a pod. It names
 * the ServiceAccount of the pods, which may be missing. Undefined if a pod exists, has existed, or is not to come yet.
 */
export function lackOfPods(job: Job, serviceAccount: string | undefined): string | undefined {
  const {
    startTime,
    active = 0,
    ready = 0,
    failed = 0,
    succeeded = 0,
    conditions,
  } = job.status ?? {};
  if (startTime === undefined || active + ready + failed + succeeded > 0) return undefined;
  if (job.spec?.['suspend'] === true || job.spec?.['parallelism'] === 0) return undefined;
  const ends = ['Complete', 'Failed', 'SuccessCriteriaMet', 'FailureTarget'];
  if (ends.some((type) => trueCondition(conditions, type))) return undefined;
  const { name, namespace = 'default' } = job.metadata;
  const account =
    serviceAccount === undefined || serviceAccount === '' ? 'default' : serviceAccount;
  return `has no pod: check that ServiceAccount ${namespace}/${account} exists, and that no quota and no admission policy refuses its pods; Events of the Job say more: kubectl describe job ${name} -n ${namespace}`;
}

/** Returns the ServiceAccount that the pod template of a Job names; undefined if it names none. */
export function serviceAccountIn(podSpec: unknown): string | undefined {
  const account = isRecord(podSpec) ? podSpec['serviceAccountName'] : undefined;
  return typeof account === 'string' ? account : undefined;
}
