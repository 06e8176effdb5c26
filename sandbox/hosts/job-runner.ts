/** Stands in for everything that runs a Job: controller, scheduler and kubelets. It makes no pods. */
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs, nodes } from '../../src/kube/resources.ts';
import { isConflict, isNotFound } from '../../src/kube/status-error.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { type Clock, rfc3339, sleep } from '../../src/util/clock.ts';

export interface JobRunnerOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly clock: Clock;
  /** Milliseconds that each Job takes. */
  readonly durationMs: number;
  /** Returns the version that the kubelet of the node reports after a Job. Without it no node changes. */
  readonly versionAfter?: (job: Job) => string | undefined;
  /** Does the work of the container `prepare` before the Job begins. */
  readonly prepared?: (job: Job, abort: AbortSignal) => Promise<void>;
}

/** Starts every new Job, and completes it after `durationMs`, until `abort` aborts. */
export async function runJobs(
  { client, namespace, clock, durationMs, versionAfter, prepared }: JobRunnerOptions,
  abort: AbortSignal,
): Promise<void> {
  const informer = createInformer(client, jobs, { namespace, clock });
  const write = async (job: Job, status: Job['status']): Promise<Job> =>
    await client.replace(
      jobs,
      { ...job, status: { ...job.status, ...status } },
      { subresource: 'status', abort },
    );
  const upgradeNode = async (job: Job): Promise<void> => {
    const kubeletVersion = versionAfter?.(job);
    const name = job.metadata.labels?.['upgrade.cattle.io/node'];
    if (kubeletVersion === undefined || name === undefined) return;
    const patch = { status: { nodeInfo: { kubeletVersion } } };
    await client.patch(nodes, name, patch, { type: 'merge', subresource: 'status', abort });
  };
  const play = async (job: Job): Promise<void> => {
    try {
      const started = await write(job, { startTime: rfc3339(clock.now()), active: 1 });
      await prepared?.(job, abort);
      await sleep(clock, durationMs, abort);
      await upgradeNode(job);
      const now = rfc3339(clock.now());
      const conditions = ['SuccessCriteriaMet', 'Complete'].map(
        (type) => ({ type, status: 'True', lastTransitionTime: now }) as const,
      );
      await write(started, { completionTime: now, active: 0, conditions });
    } catch (error) {
      // After a conflict or a 404, the error is ignored: somebody has deleted or changed the Job during its run, and
      // does not need its result.
      if (!abort.aborted && !isConflict(error) && !isNotFound(error)) throw error;
    }
  };
  const running = new Set<Promise<void>>();
  informer.addHandler({
    added: (job) => {
      if (job.status?.startTime !== undefined) return;
      const played = play(job).finally(() => running.delete(played));
      running.add(played);
    },
  });
  await informer.run(abort);
  await Promise.all(running);
}
