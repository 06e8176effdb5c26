/** Helpers for hooks that are Jobs, on a real API server. The test itself acts as the kubelet of their pods. */
import { expect, vi } from 'vitest';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { HOOK_LABEL } from '../../src/drain/own-pods.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Job, jobs, type Pod, pods } from '../../src/kube/resources.ts';
import { PATIENCE } from './puppets.ts';

const NAMESPACE = 'refit-hooks';
export type Hooks = NonNullable<UpgradePolicySpec['hooks']>;

/** Returns a hook with a Job whose pod runs on the node of the hook. */
export function jobHook(
  name: string,
  when: Hooks[number]['when'],
  more: Partial<Hooks[number]> = {},
): Hooks[number] {
  const hook = freeJobHook(name, when);
  return { ...hook, job: { ...hook.job, pinToNode: true }, ...more };
}

/** Returns a hook with a Job whose pod may run anywhere. */
export function freeJobHook(
  name: string,
  when: Hooks[number]['when'],
  more: Partial<Hooks[number]> = {},
) {
  const container = { name: 'hook', image: 'registry.example/hook:1', command: ['true'] };
  const template = { spec: { containers: [container], terminationGracePeriodSeconds: 0 } };
  return { name, when, job: { namespace: NAMESPACE, template }, timeout: '5m', ...more };
}

export interface HookJobs {
  /** Returns the Jobs of the hook, the oldest first. */
  readonly of: (name: string) => Promise<Job[]>;
  /** Waits until the hook has this number of Jobs, and returns the last one. */
  readonly last: (name: string, count?: number) => Promise<Job>;
  /** Waits for the pod of the Job. */
  readonly podOf: (job: Job) => Promise<Pod>;
  /** Ends the pod of the Job as a kubelet would. The Job controller of the cluster then ends the Job. */
  readonly end: (job: Job, phase: 'Succeeded' | 'Failed') => Promise<void>;
  readonly remove: () => Promise<void>;
}

export function hookJobs(admin: KubeClient): HookJobs {
  const namespace = NAMESPACE;
  const of = async (name: string): Promise<Job[]> => {
    const labelSelector = `${HOOK_LABEL}=${name}`;
    const { items } = await admin.list(jobs, { namespace, labelSelector });
    return items.toSorted((a, b) =>
      (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''),
    );
  };
  const podOf = async ({ metadata }: Job): Promise<Pod> => {
    const labelSelector = `batch.kubernetes.io/job-name=${metadata.name}`;
    return await vi.waitFor(async () => {
      const { items } = await admin.list(pods, { namespace, labelSelector });
      expect(items).toHaveLength(1);
      return items[0] as Pod;
    }, PATIENCE);
  };
  return {
    of,
    podOf,
    last: async (name, count = 1) =>
      await vi.waitFor(async () => {
        const found = await of(name);
        expect(found).toHaveLength(count);
        return found.at(-1) as Job;
      }, PATIENCE),
    async end(job, phase) {
      const { metadata } = await podOf(job);
      const options = { type: 'merge', subresource: 'status', namespace } as const;
      await admin.patch(pods, metadata.name, { status: { phase } }, options);
    },
    async remove() {
      const { items } = await admin.list(jobs, { namespace });
      for (const { metadata } of items)
        await admin.delete(jobs, metadata.name, { namespace, propagationPolicy: 'Background' });
    },
  };
}
