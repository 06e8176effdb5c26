/** Tests which images of a plan a policy refuses. */
import { expect, test } from 'vitest';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { because } from '../model/reasons.ts';
import { imageProblems } from './images.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const STRICT = buildPolicy({ name: 'strict', requireImageDigest: true });

const refused = (image: string) =>
  because(
    'Unverified',
    `the image "${image}" of spec.upgrade.image has no digest (@sha256: and 64 hexadecimal digits), and UpgradePolicy strict requires one; to allow this, set spec.payloads.requireImageDigest: false in the policy`,
    { downloads: [] },
  );

test.each<[string, string, boolean]>([
  ['with a digest passes', `example.com/a/b@${DIGEST}`, true],
  ['with a tag and a digest passes', `example.com/a/b:v1.36.3@${DIGEST}`, true],
  ['with a tag alone is refused', 'example.com/a/b:v1.36.3', false],
  ['with neither is refused', 'example.com/a/b', false],
  ['with an incomplete digest is refused', 'example.com/a/b@sha256:abc', false],
  ['with a digest as its tag is refused', `example.com/a/b:${'a'.repeat(64)}`, false],
])('an image %s if the policy requires digests', (_name, image, passes) => {
  const images = [{ field: 'spec.upgrade.image', image }];
  expect(imageProblems({ images }, STRICT)).toEqual(passes ? [] : [refused(image)]);
  expect(imageProblems({ images }, buildPolicy({ name: 'strict' }))).toEqual([]);
});

test('each image without a digest has its own reason, and a plan without images has none', () => {
  const images = [
    { field: 'spec.prepare.image', image: 'a' },
    { field: 'spec.upgrade.image', image: 'b' },
  ];
  expect(imageProblems({ images }, STRICT)).toHaveLength(2);
  expect(imageProblems({}, STRICT)).toEqual([]);
});
