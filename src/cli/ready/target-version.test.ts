/** Tests how `refit ready` reads the version to which a cluster is to go. */
import { expect, test } from 'vitest';
import { readTargetVersion } from './target-version.ts';

test.each([
  ['v1.37', 'v1.37.0'],
  ['1.37', 'v1.37.0'],
  ['v1.37.10', 'v1.37.10'],
  ['v1.37.2+k0s.0', 'v1.37.2+k0s.0'],
  ['v1.37.0-rc.01', 'v1.37.0-rc.01'],
])('%s stands for %s', (text, version) => {
  expect(readTargetVersion(text)).toBe(version);
});

test.each(['v1.037', 'v01.37', 'v1.37.01', '1.037.0+k3s1', 'soon', '', 'vv1.37', 'v1'])(
  '"%s" is refused, because no release has such a version',
  (text) => {
    expect(() => readTargetVersion(text)).toThrow(
      `--to must be a version such as v1.37 or v1.37.2+k0s.0, found "${text}"`,
    );
  },
);
