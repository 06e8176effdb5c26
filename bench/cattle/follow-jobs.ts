/** Watches Jobs from outside of the controller, and records when each Job was created and completed. */
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import type { Clock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { NAMESPACE } from './rig.ts';

/** A time limit that is several times as long as the time that the slowest controller needs. */
const TIMEOUT_MS = 900_000;

export interface JobTimes {
  /** The times in milliseconds, in ascending order. */
  readonly created: number[];
  readonly completed: number[];
}

/**
 * Calls `begin` when the watch has started. Resolves when `count` Jobs of the plan are complete. Calls `onComplete`
 * after each completed Job except the last.
 */
export async function followJobs(
  client: KubeClient,
  { plan, count, clock, abort }: { plan: string; count: number; clock: Clock; abort: AbortSignal },
  begin: () => void,
  onComplete: () => void = () => undefined,
): Promise<JobTimes> {
  const times: JobTimes = { created: [], completed: [] };
  const over = new AbortController();
  const stop = AbortSignal.any([over.signal, abort, AbortSignal.timeout(TIMEOUT_MS)]);
  const labelSelector = `upgrade.cattle.io/plan=${plan}`;
  const informer = createInformer<Job>(client, jobs, {
    namespace: NAMESPACE,
    labelSelector,
    clock,
    transform: smaller,
  });
  informer.addHandler({
    added: () => times.created.push(clock.monotonic()),
    updated: (job, before) => {
      if (!isComplete(job) || isComplete(before)) return;
      times.completed.push(clock.monotonic());
      if (times.completed.length === count) over.abort();
      else onComplete();
    },
  });
  const following = informer.run(stop);
  await informer.whenSynced(stop);
  begin();
  await following;
  if (times.completed.length === count) return times;
  throw new RefitError(
    'REFIT_PLAN_FAILED',
    `${times.completed.length} of ${count} Jobs were complete in time`,
  );
}

function isComplete({ status }: Job): boolean {
  return (
    status?.conditions?.some(({ type, status: is }) => type === 'Complete' && is === 'True') ??
    false
  );
}

function smaller({ metadata: { name, namespace, resourceVersion }, status }: Job): Job {
  return {
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      ...(resourceVersion ? { resourceVersion } : {}),
    },
    ...(status ? { status } : {}),
  };
}
