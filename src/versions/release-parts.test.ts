/** Tests the versions that the parts of one k0s release report. */
import { expect, test } from 'vitest';
import { isSameVersion, kubernetesPartOf, mayBePartOf, mayBeSameVersion } from './release-parts.ts';

test.each([
  ['v1.36.3+k0s.2', 'v1.36.3+k0s'],
  ['v1.37.0-alpha.1+k0s.0', 'v1.37.0-alpha.1+k0s'],
  ['v1.36.3+k0s.12', 'v1.36.3+k0s'],
  ['v1.36.3+k0s.0-ec.1', 'v1.36.3+k0s'],
  ['v1.36.3+k0s.2-rc', 'v1.36.3+k0s'],
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

test.each([
  ['v1.36.3+k0s.2', 'v1.36.3+k0s.2', true, true],
  ['1.36.3+k0s.2', 'v1.36.3+k0s.2', true, true],
  ['v1.36.3-k0s.2', 'v1.36.3+k0s.2', true, true],
  ['v1.36.3', 'v1.36.3+k0s.2', false, true],
  ['v1.36.3+k0s.1', 'v1.36.3+k0s.2', false, false],
  ['v1.36.3', 'v1.36.4', false, false],
  ['unreadable', 'v1.36.4', false, true],
  ['unreadable', 'unreadable', true, true],
])('%s and %s: the same %s, maybe the same %s', (a, b, isSame, mayBe) => {
  expect([isSameVersion(a, b), isSameVersion(b, a)]).toEqual([isSame, isSame]);
  expect([mayBeSameVersion(a, b), mayBeSameVersion(b, a)]).toEqual([mayBe, mayBe]);
});
