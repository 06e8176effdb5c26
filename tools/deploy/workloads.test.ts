/** Shows that pods of Refit survive the drain of their node, by Refit and by the Jobs of Plans, also on a single node. */
import { expect, test } from 'vitest';
import { isOwnPod } from '../../src/drain/own-pods.ts';
import type { Pod } from '../../src/kube/resources.ts';
import { parseLabelSelector } from '../../src/kube/selectors.ts';
import { CAPI, CATTLE, K0S, workload } from './workloads.ts';

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
  // What every Plan of upgrade.cattle.io adds to the selector of its drain.
  expect(parseLabelSelector('!upgrade.cattle.io/controller')(pod)).toBe(false);
  expect(isOwnPod(pod)).toBe(true);
  expect(template?.spec).toMatchObject({
    tolerations: expect.arrayContaining([
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' },
    ]) as unknown,
  });
  // Nobody can change it, so an update of an older installation would fail.
  expect(Object.keys(selector?.matchLabels ?? {})).toEqual([
    'app.kubernetes.io/name',
    'app.kubernetes.io/component',
  ]);
});
