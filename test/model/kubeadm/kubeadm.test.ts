/**
 * Explores small runs of `refit kubeadm apply` with the real dialect, and tests that the explorer finds the planted
 * mistakes, and that docs/internals/safety.md names exactly the runs that are explored.
 */
import { expect, test } from 'vitest';
import { exploreFor } from '../planted-world.ts';
import { namesIn } from '../safety-page.ts';
import { readPage } from '../safety-page-file.ts';
import { KUBEADM_CONFIGURATIONS, LARGE_KUBEADM_CONFIGURATIONS } from './configurations.ts';
import { testKubeadmConfigurations } from './explored-kubeadm.ts';
import { KUBEADM_INVARIANTS } from './kubeadm-invariants.ts';
import { KubeadmWorld } from './kubeadm-world.ts';
import { KUBEADM_MISTAKES } from './mistakes.ts';

testKubeadmConfigurations(KUBEADM_CONFIGURATIONS);

test.each(KUBEADM_MISTAKES)(
  '$name: found by $breaks',
  async ({ configuration, leader, breaks }) => {
    const { violation } = await exploreFor(new KubeadmWorld(configuration, leader), breaks);
    expect(violation?.invariant).toBe(breaks);
  },
);

test('every invariant of the runs of kubeadm is broken by some mistake', () => {
  const broken = new Set(KUBEADM_MISTAKES.map(({ breaks }) => breaks));
  expect(KUBEADM_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual(
    [],
  );
});

test('docs/internals/safety.md names exactly the runs of kubeadm that are explored', () => {
  const names = (table: string): string[] => namesIn(readPage(), table);
  expect(names('kubeadm')).toEqual(KUBEADM_CONFIGURATIONS.map(({ name }) => name));
  expect(names('large-kubeadm')).toEqual(LARGE_KUBEADM_CONFIGURATIONS.map(({ name }) => name));
});
