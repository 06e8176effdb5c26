/** Tests how Refit recognizes Kured, and how it reads the number of nodes that Kured reboots at once. */
import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/resources.ts';
import { concurrencyOf, isKured, lockPlaceOf } from './kured-concurrency.ts';

function running(...containers: readonly object[]): KubeObject {
  const metadata = { name: 'reboots', namespace: 'kured' };
  return { metadata, spec: { template: { spec: { containers } } } } as KubeObject;
}

test.each<[string, number | undefined]>([
  ['0', 1],
  ['12', 12],
  ['500', 500],
  ['501', undefined],
  ['-1', undefined],
  ['1e2', undefined],
  ['0x10', undefined],
  [' 2', undefined],
])('with --concurrency=%s, Kured reboots %s nodes at once', (value, expected) => {
  expect(concurrencyOf(running({ args: [`--concurrency=${value}`] }))).toBe(expected);
});

test.each<[string, boolean, readonly object[]]>([
  ['whose program is kured', true, [{ command: ['/usr/bin/kured', '--period=1h'] }]],
  ['whose program is kured without a folder', true, [{ command: ['kured'] }]],
  ['whose image is kured', true, [{ image: 'ghcr.io/kubereboot/kured:1.22.0' }]],
  ['whose image is kured without a tag', true, [{ image: 'kured' }]],
  ['beside another container', true, [{ image: 'proxy:1' }, { image: 'kured:1' }]],
  ['whose program is a shell', false, [{ command: ['/bin/sh', 'kured'], image: 'busybox' }]],
  ['whose registry is called kured', false, [{ image: 'kured/proxy:kured' }]],
  ['without an image', false, [{ name: 'kured' }]],
  ['without a container', false, []],
])('a DaemonSet %s counts as Kured: %s', (_title, expected, containers) => {
  expect(isKured(running(...containers))).toBe(expected);
});

test('a DaemonSet without a template is not Kured, and its settings are the defaults', () => {
  const bare = { metadata: { name: 'kured', namespace: 'kube-system' } };
  expect(isKured(bare)).toBe(false);
  expect(concurrencyOf(bare)).toBe(1);
  expect(lockPlaceOf(bare)).toEqual({
    namespace: 'kube-system',
    name: 'kured',
    annotation: 'weave.works/kured-node-lock',
  });
});

test('a flag without a value leaves the place of the lock unknown', () => {
  expect(lockPlaceOf(running({ command: ['kured'], args: ['--ds-name'] }))).toMatchObject({
    name: '',
  });
});
