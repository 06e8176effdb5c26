/** The Job controller of a scene: it ends the Jobs of hooks as the scene says, and deletes Jobs whose life is over. */

import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { HOOK_NODE_ANNOTATION } from '../../src/drain/own-pods.ts';
import { type Job, jobs, namespaces } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { endedJob } from '../scenes/ended-job.ts';
import type { RunningActor, Stage } from '../scenes/stage.ts';

export const HOOK_NAMESPACE = 'refit-hooks';
/** The seconds that the Job of a hook works. */
const HOOK_SECONDS = 5;

/** A Job of a hook that was created. */
export interface SeenHook {
  readonly job: string;
  /** The node for which the hook runs; undefined for a hook of the plan. */
  readonly node: string | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

export class HookJobs implements RunningActor {
  end: 'Complete' | 'Failed' | 'never' = 'Complete';
  /** The Jobs of hooks, the oldest first. */
  readonly seen: SeenHook[] = [];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async createNamespace(): Promise<void> {
    const metadata = { name: HOOK_NAMESPACE };
    await this.#stage.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
  }

  /** A stage calls this function alone. */
  readonly tick = async (): Promise<void> => {
    const { client, clock } = this.#stage;
    for (const job of (await client.list(jobs)).items) {
      const { name, namespace } = job.metadata;
      const isHook = namespace === HOOK_NAMESPACE;
      if (isHook) this.#see(job);
      const how = { namespace, propagationPolicy: 'Background' } as const;
      if (isOverLife(job, clock.now())) await client.delete(jobs, name, how);
      else if (isHook) await this.#work(job);
    }
  };

  #see(job: Job): void {
    const { uid = '', annotations = {} } = job.metadata;
    if (this.seen.some((known) => known.job === uid)) return;
    const node = annotations[HOOK_NODE_ANNOTATION];
    this.seen.push({ job: uid, node, at: this.#stage.clock.now() });
  }

  async #work(job: Job): Promise<void> {
    const { client, clock } = this.#stage;
    const { name, namespace, creationTimestamp = '' } = job.metadata;
    const age = (clock.now() - Date.parse(creationTimestamp)) / 1000;
    if (this.end === 'never' || job.status?.conditions || age < HOOK_SECONDS) return;
    const ended = { status: endedJob(job, this.end, rfc3339(clock.now())) };
    await client.patch(jobs, name, ended, { namespace, type: 'merge', subresource: 'status' });
  }
}

/** Kubernetes deletes a Job `ttlSecondsAfterFinished` after its end. */
function isOverLife({ spec, status }: Job, now: number): boolean {
  const ttl = spec?.['ttlSecondsAfterFinished'];
  const end = status?.conditions?.find(({ type }) => type === 'Complete' || type === 'Failed');
  if (typeof ttl !== 'number' || end?.lastTransitionTime === undefined) return false;
  return now - Date.parse(end.lastTransitionTime) >= ttl * 1000;
}

/** The moment of a hook, as a policy names it. */
export type When = NonNullable<UpgradePolicySpec['hooks']>[number]['when'];

/** A hook of a scene, which is a Job. */
export function hookJob(when: When, namespace = HOOK_NAMESPACE) {
  const template = { spec: { containers: [{ name: 'a', image: 'registry.example.com/a' }] } };
  return { name: 'backup', when, timeout: '5m', job: { namespace, template } } as const;
}
