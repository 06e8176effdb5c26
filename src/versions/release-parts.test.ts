/** Tests the versions that the parts of one k0s release report. */
import { expect, test } from 'vitest';
import { kubernetesPartOf, mayBePartOf } from './release-parts.ts';

test.each([
  ['v1.36.3+k0s.2', 'v1.36.3+k0s'],
  ['v1.37.0-alpha.1+k0s.0', 'v1.37.0-alpha.1+k0s'],
  ['v1.36.3+k0s.12', 'v1.36.3+k0s'],
  ['v1.36.3+k0s.2-rc', 'v1.36.3+k0s.2-rc'],
  ['v1.36.3+k0s', 'v1.36.3+k0s'],
  ['v1.36.3', 'v1.36.3'],
  ['v1.36.3+rke2r1', 'v1.36.3+rke2r1'],
])('the kubelet of %s reports %s', (release, kubelet) => {
  expect(kubernetesPartOf(release)).toBe(kubelet);
  expect(mayBePartOf(kubelet, release)).toBe(true);
});

test.each([
  ['v1.36.3+k0s', 'v1.36.4+k0s.0'],
  ['v1.36.3+k0s.0', 'v1.36.3+k0s.2'],
  ['v1.36.3', 'v1.36.3+k0s.2'],
])('%s is no part of %s', (found, release) => {
  expect(mayBePartOf(found, release)).toBe(false);
});

test('a controller reports the release itself', () => {
  expect(mayBePartOf('v1.36.3+k0s.2', 'v1.36.3+k0s.2')).toBe(true);
});
