/** Tests that a text gets another version only where it names the present one, and not a longer one. */
import { expect, test } from 'vitest';
import { withOtherVersion } from './renamed-version.ts';

test.each([
  ['/opt/v1.36.1/kubelet', '/opt/v1.37.2/kubelet'],
  ['kubelet-1.36.1-00', 'kubelet-1.37.2-00'],
  ['v1.36.1/v1.36.1', 'v1.37.2/v1.37.2'],
])('%s names v1.36.1, and becomes %s', (before, after) => {
  expect(withOtherVersion(before, 'v1.36.1', 'v1.37.2')).toBe(after);
});

test.each([
  '/opt/v1.36.10/kubelet',
  '/opt/11.36.1/kubelet',
  '/opt/v1.36.1.2',
  '/opt/v1x36x1',
  '/opt',
])('%s does not name v1.36.1', (text) => {
  expect(withOtherVersion(text, 'v1.36.1', 'v1.37.2')).toBeUndefined();
});

test.each([
  ['a/v1.36.1+k0s.0', 'a/v1.37.2+k0s.1'],
  ['a/v1.36.1%2Bk0s.0/k0s-v1.36.1%2bk0s.0', 'a/v1.37.2%2Bk0s.1/k0s-v1.37.2%2bk0s.1'],
])('%s has a build, and becomes %s', (before, after) => {
  expect(withOtherVersion(before, 'v1.36.1+k0s.0', 'v1.37.2+k0s.1')).toBe(after);
  expect(withOtherVersion('v1.36.1+k0s.01', 'v1.36.1+k0s.0', 'v1.37.2+k0s.1')).toBeUndefined();
});
