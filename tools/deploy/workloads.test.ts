/** Tests that pods of Refit survive if Refit or the Job of a Plan drains their node, also on a single node. */
import { afterEach, expect, test } from 'vitest';
import { drainPreviewer } from '../../src/drain/drain-preview.ts';
import { isOwnPod } from '../../src/drain/own-pods.ts';
import { DEFAULT_DRAIN } from '../../src/drain/pods.ts';
import type { Pod, PodDisruptionBudget } from '../../src/kube/resources.ts';
import { parseLabelSelector } from '../../src/kube/selectors.ts';
import { drainRig } from '../../test/support/builders/drain-rig.ts';
import type { PodApi } from '../../test/support/builders/pod-api.ts';
import { CAPI, CATTLE, K0S, workload } from './workloads.ts';

const { drain, endAll } = drainRig();

afterEach(endAll);

interface Deployment {
  readonly kind: string;
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly metadata: Pod['metadata']; readonly spec: object };
  };
}

test.each([K0S, CATTLE, CAPI])('the pods of $name', (of) => {
  const made = workload(of) as Deployment[];
  const { selector, template } = made.find(({ kind }) => kind === 'Deployment')?.spec ?? {};
  const pod = { metadata: template?.metadata } as Pod;
  // The selector that every Plan of upgrade.cattle.io adds to its drain.
  expect(parseLabelSelector('!upgrade.cattle.io/controller')(pod)).toBe(false);
  expect(isOwnPod(pod)).toBe(true);
  expect(template?.spec).toMatchObject({
    tolerations: expect.arrayContaining([
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' },
    ]) as unknown,
  });
  // The selector of a Deployment is immutable. If it had other labels, an update of an older installation would fail.
  expect(Object.keys(selector?.matchLabels ?? {})).toEqual([
    'app.kubernetes.io/name',
    'app.kubernetes.io/component',
  ]);
});

test.each([K0S, CATTLE, CAPI])(
  'the budget of $name never blocks the drain of a node that has all of its pods',
  async (of) => {
    const made = workload(of) as Deployment[];
    const { template } = made.find(({ kind }) => kind === 'Deployment')?.spec ?? {};
    const budget = made.find(({ kind }) => kind === 'PodDisruptionBudget');
    const labels = template?.metadata.labels ?? {};
    const traits = { labels, namespace: of.namespace };
    // One of the two pods is not ready, so the budget allows no eviction at this time.
    const status = { expectedPods: 2, desiredHealthy: 1, currentHealthy: 1, disruptionsAllowed: 0 };
    const prepare = (api: PodApi): void => {
      api.budgets = [{ ...(budget as unknown as PodDisruptionBudget), status }];
    };
    const rig = await drain(
      [
        [`${of.name}-1`, traits],
        [`${of.name}-2`, { ...traits, ready: false }],
      ],
      {},
      prepare,
    );
    expect(await rig.done).toBe('drained');
    expect(rig.api.evictions).toEqual([]);
    const { signal: abort } = new AbortController();
    const preview = await drainPreviewer(rig.api.client, abort).ahead('n1', DEFAULT_DRAIN);
    expect(preview).toEqual({ evictable: 0, obstacles: [], refused: [] });
  },
);
