/**
 * Creates and finds the Jobs whose pods somebody else wrote. No other code creates such a Job, so none is created in a
 * namespace that the administrator has not listed. A Job that exists already counts only if it runs exactly the pods
 * that it must run.
 */
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import type { KubeClient } from './client.ts';
import type { JobNamespaces } from './job-namespaces.ts';
import { type Job, jobs } from './resources.ts';
import {
  ifFound,
  ifNew,
  isForbidden,
  isInvalid,
  isInvalidObject,
  isNotFound,
} from './status-error.ts';

export interface TemplateJobs {
  /** The namespaces in which these Jobs may run. */
  readonly namespaces: JobNamespaces;
  /**
   * Resolves with the Job of this name and namespace; undefined if there is none. Rejects with ForeignJob if somebody
   * else created it with other content, with UncomparedJob, and with RefusedNamespace.
   */
  find(wanted: Job, abort: AbortSignal): Promise<Job | undefined>;
  /** Asks the API server whether it would create the Job now, and stores nothing. Rejects if it would not. */
  rehearse(wanted: Job, abort: AbortSignal): Promise<void>;
  /** Creates the Job. Does nothing if it exists. Rejects with RefusedNamespace. */
  create(wanted: Job, abort: AbortSignal): Promise<void>;
}

/** The namespace may not have such Jobs. */
export class RefusedNamespace extends Error {
  override readonly name = 'RefusedNamespace';
}

/** A Job of this name exists, but it does not run the pods that it must run. */
export class ForeignJob extends Error {
  override readonly name = 'ForeignJob';
}

/**
 * A Job of this name exists, but nothing shows now whether it runs the pods that it must run, because the request
 * that would show it has failed: for example, a right is missing, a quota or an admission rule refuses it, or a webhook
 * or the API server fails. The cause is the error of this request. If the API server says that the template itself is
 * invalid, its error is thrown instead.
 */
export class UncomparedJob extends Error {
  override readonly name = 'UncomparedJob';
}

/** The labels that the API server adds to the pods of each Job. They differ from Job to Job. */
const OF_ONE_JOB = new Set([
  'batch.kubernetes.io/controller-uid',
  'batch.kubernetes.io/job-name',
  'controller-uid',
  'job-name',
]);
/** The most uids that are remembered. A Job whose uid is forgotten is compared again. */
const MOST_KNOWN = 10_000;

export function templateJobs(client: KubeClient, namespaces: JobNamespaces): TemplateJobs {
  /** The uids of Jobs that this process has created or compared. */
  const known = new Set<string>();
  const remember = (uid: string | undefined): void => {
    if (known.size >= MOST_KNOWN) known.clear();
    if (uid !== undefined) known.add(uid);
  };
  return {
    namespaces,
    async find(wanted, abort) {
      const { name } = wanted.metadata;
      const options = { namespace: allowed(wanted, namespaces), abort };
      const found = await ifFound(client.get(jobs, name, options));
      const uid = found?.metadata.uid;
      if (found === undefined || (uid !== undefined && known.has(uid))) return found;
      // Only the API server knows which defaults it adds. Its answer to the same Job under another name shows them.
      const twin = { ...wanted, metadata: { ...wanted.metadata, name: `${name.slice(0, 60)}-x` } };
      const expected = await client
        .create(jobs, twin, { ...options, dryRun: true })
        .catch((error: unknown) => {
          if (abort.aborted || isInvalidObject(error)) throw error;
          throw new UncomparedJob(
            `Job ${options.namespace}/${name} exists, but Refit cannot check that it runs the pods of this template: ${messageOf(error)}`,
            { cause: error },
          );
        });
      if (!sameJson(comparable(found), comparable(expected)))
        throw new ForeignJob(
          `Job ${options.namespace}/${name} exists, but does not run the pods of this template: the template was edited after the Job was created, or somebody else created the Job. Delete the Job, and Refit creates it from the template`,
        );
      remember(uid);
      return found;
    },
    async rehearse(wanted, abort) {
      const options = { namespace: allowed(wanted, namespaces), abort };
      await client.create(jobs, wanted, { ...options, dryRun: true });
    },
    async create(wanted, abort) {
      const options = { namespace: allowed(wanted, namespaces), abort };
      const created = await ifNew(client.create(jobs, wanted, options));
      remember(created?.metadata.uid);
    },
  };
}

/**
 * Asks the API server whether it would create the Job now. Resolves with the reason if it would not; undefined if it
 * would, if it does not say, or if Refit itself refuses the namespace, which `Accepted` of the policy says. Nothing is
 * stored.
 */
export async function lookAheadAtTemplate(
  templates: Pick<TemplateJobs, 'rehearse'>,
  job: Job,
  abort: AbortSignal,
): Promise<string | undefined> {
  try {
    await templates.rehearse(job, abort);
    return undefined;
  } catch (error) {
    const isRefusal = isNotFound(error) || isForbidden(error) || isInvalid(error);
    return isRefusal
      ? `no Job can be created in namespace ${job.metadata.namespace}: ${messageOf(error)}`
      : undefined;
  }
}

/** Returns the namespace of the Job. Throws RefusedNamespace if the Job may not be there. */
function allowed({ metadata }: Job, namespaces: JobNamespaces): string {
  const { name, namespace = '' } = metadata;
  const refusal = namespaces.refusalOf(namespace);
  if (refusal === undefined) return namespace;
  throw new RefusedNamespace(`Refit creates no Job ${namespace}/${name}: ${refusal}`);
}

/**
 * Returns what the pods of the Job do and when it counts as complete. Leaves out the parts that differ between two Jobs
 * with the same content, and the limits of time and of retries: somebody may change them in the policy while the Job
 * runs, and the same work must not be done twice because of that.
 */
function comparable({ spec = {} }: Job): object {
  const {
    selector: _selector,
    suspend: _suspend,
    activeDeadlineSeconds: _deadline,
    backoffLimit: _retries,
    ttlSecondsAfterFinished: _kept,
    template,
    ...others
  } = spec;
  const { metadata, spec: pods } = (template ?? {}) as {
    readonly metadata?: { readonly labels?: object; readonly annotations?: object };
    readonly spec?: unknown;
  };
  const labels = Object.entries(metadata?.labels ?? {}).filter(([key]) => !OF_ONE_JOB.has(key));
  const annotations = metadata?.annotations ?? {};
  return { ...others, labels: Object.fromEntries(labels), annotations, pods };
}
