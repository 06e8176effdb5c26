/** Tests that versions have one total order, also with build suffixes, and that this is the order that people expect. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compareVersions,
  compareVersionTexts,
  parseVersion,
  type Version,
  withPlusSign,
} from './version.ts';

function parsed(text: string): Version {
  const version = parseVersion(text);
  if (!version) throw new Error(`${text} is not a version`);
  return version;
}

const order = (a: string, b: string): number => Math.sign(compareVersions(parsed(a), parsed(b)));

describe('parsing', () => {
  test.each<[string, Version]>([
    ['v1.36.3+k0s.2', { major: 1, minor: 36, patch: 3, pre: '', build: 'k0s.2' }],
    ['1.36.3', { major: 1, minor: 36, patch: 3, pre: '', build: '' }],
    ['v1.37.0-alpha.1+k0s.0', { major: 1, minor: 37, patch: 0, pre: 'alpha.1', build: 'k0s.0' }],
    ['v0.0.0', { major: 0, minor: 0, patch: 0, pre: '', build: '' }],
    ['v1.34.1+k0s', { major: 1, minor: 34, patch: 1, pre: '', build: 'k0s' }],
    ['v1.34.1+rke2r10', { major: 1, minor: 34, patch: 1, pre: '', build: 'rke2r10' }],
    ['v1.33.5-eks-113cf36', { major: 1, minor: 33, patch: 5, pre: '', build: 'eks-113cf36' }],
    ['v1.33.5-gke.1162000', { major: 1, minor: 33, patch: 5, pre: '', build: 'gke.1162000' }],
    ['v1.33.1-k3s1', { major: 1, minor: 33, patch: 1, pre: '', build: 'k3s1' }],
    ['v1.33.1-rke2r1', { major: 1, minor: 33, patch: 1, pre: '', build: 'rke2r1' }],
    ['v1.33.1-k0s.0', { major: 1, minor: 33, patch: 1, pre: '', build: 'k0s.0' }],
    ['v1.33.1-k0s', { major: 1, minor: 33, patch: 1, pre: '', build: 'k0s' }],
    ['v1.33.1-rc1-k3s1', { major: 1, minor: 33, patch: 1, pre: 'rc1', build: 'k3s1' }],
    ['v1.33.1-rc.1-k0s.0', { major: 1, minor: 33, patch: 1, pre: 'rc.1', build: 'k0s.0' }],
    ['v1.33.1-k3sish', { major: 1, minor: 33, patch: 1, pre: 'k3sish', build: '' }],
    ['v99.99.99', { major: 99, minor: 99, patch: 99, pre: '', build: '' }],
  ])('%s', (text, version) => {
    expect(parseVersion(text)).toEqual(version);
  });

  test.each([
    '',
    'v',
    'latest',
    'v1.36',
    'v1',
    'v1.36.3.4',
    'v1.36.x',
    'V1.36.3',
    'vv1.36.3',
    ' v1.36.3',
    'v1.36.3 ',
    'v1.36.3\n',
    'v1.36.3-',
    'v1.36.3+',
    'v1.36.3+a+b',
    'v1.36.3_1',
    'v-1.36.3',
    'v1.36.3+k0s/2',
  ])('%j is none', (text) => {
    expect(parseVersion(text)).toBeUndefined();
  });
});

test.each([
  ['v1.33.1-k3s1', 'v1.33.1+k3s1'],
  ['v1.33.1-rc1-rke2r2', 'v1.33.1-rc1+rke2r2'],
  ['v1.33.1-k0s.0', 'v1.33.1+k0s.0'],
  ['v1.33.1-k0s', 'v1.33.1+k0s'],
  ['v1.33.1+k0s.0', 'v1.33.1+k0s.0'],
  ['v1.33.1-rc.1', 'v1.33.1-rc.1'],
  ['v1.33.5-eks-113cf36', 'v1.33.5-eks-113cf36'],
])('%s with a plus sign is %s', (text, wanted) => {
  expect(withPlusSign(text)).toBe(wanted);
});

describe('order', () => {
  test.each<[string, string]>([
    ['1.34.1+k0s.0', '1.34.1+k0s.1'],
    ['1.34.1+k0s.2', '1.34.1+k0s.10'],
    ['1.34.1+k0s.9', '1.34.1+k0s.10'],
    ['1.34.1+rke2r2', '1.34.1+rke2r10'],
    ['1.34.1+k3s2', '1.34.1+k3s10'],
    ['1.33.5', '1.33.5-eks-113cf36'],
    ['1.34.0', '1.34.1-rc.1'],
    ['1.34.1-rc.1', '1.34.1'],
    ['1.34.1-rc.1+k0s.5', '1.34.1+k0s.0'],
    ['1.34.1-rc.2', '1.34.1-rc.10'],
    ['1.34.1-alpha.1', '1.34.1-beta.0'],
    ['1.34.1-alpha', '1.34.1-alpha.1'],
    ['1.34.1', '1.34.1+k0s.0'],
    ['1.34.1+k0s', '1.34.1+k0s.0'],
    ['1.9.0', '1.10.0'],
    ['1.34.9', '1.34.10'],
    ['1.99.99', '2.0.0'],
  ])('%s comes before %s', (a, b) => {
    expect([order(a, b), order(b, a)]).toEqual([-1, 1]);
  });

  test('the newest of several rebuilds is the one with the highest number', () => {
    const rebuilds = ['1.34.1+k0s.0', '1.34.1+k0s.10', '1.34.1+k0s.2'];
    expect(rebuilds.toSorted(order).at(-1)).toBe('1.34.1+k0s.10');
  });

  test('a leading v means nothing', () => {
    expect(order('v1.34.1', '1.34.1')).toBe(0);
  });
});

describe('whatever the versions are', () => {
  const number = fc.integer({ min: 0, max: 12 });
  const suffix = fc.constantFrom(
    '',
    'rc.1',
    'rc.2',
    'rc.10',
    'alpha',
    'alpha.1',
    'beta-1',
    '1',
    '01',
  );
  const build = fc.constantFrom(
    '',
    'k0s',
    'k0s.0',
    'k0s.2',
    'k0s.10',
    'k3s2',
    'rke2r10',
    'eks-113cf36',
    'a-b',
  );
  const version = fc
    .tuple(number, number, number, suffix, build)
    .map(
      ([major, minor, patch, pre, made]) =>
        `v${major}.${minor}.${patch}${pre && `-${pre}`}${made && `+${made}`}`,
    );
  const close = fc
    .tuple(suffix, build)
    .map(([pre, made]) => `v1.2.3${pre && `-${pre}`}${made && `+${made}`}`);
  const any = fc.oneof(version, close, close);

  test('a comparison the other way round says the opposite', () => {
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(order(a, b) + order(b, a)).toBe(0);
      }),
    );
  });

  test('what comes before what comes before comes before: one order', () => {
    fc.assert(
      fc.property(any, any, any, (a, b, c) => {
        const [low = '', middle = '', high = ''] = [a, b, c].toSorted(order);
        expect(
          Math.max(order(low, middle), order(middle, high), order(low, high)),
        ).toBeLessThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });

  test('only equal versions are equal: leading zeros aside, no rebuild is invisible', () => {
    const plain = (text: string): string => text.replace('-01', '-1');
    fc.assert(
      fc.property(close, close, (a, b) => {
        expect(order(a, b) === 0).toBe(plain(a) === plain(b));
      }),
    );
  });

  test('without suffixes the numbers decide, the first that differs', () => {
    const numbers = fc.tuple(number, number, number);
    fc.assert(
      fc.property(numbers, numbers, (a, b) => {
        const difference =
          a.map((part, index) => part - (b[index] ?? 0)).find((each) => each !== 0) ?? 0;
        expect(order(a.join('.'), b.join('.'))).toBe(Math.sign(difference));
      }),
    );
  });
});

test.each([
  ['v1.36.3', '1.36.3', 0],
  ['1.36.2', 'v1.36.3', -1],
  ['1.36.10', '1.36.3', 1],
  ['latest', '1.36.3', Number.NaN],
  ['1.36.3', undefined, Number.NaN],
])('the text %s, compared with %s: %d', (a, b, wanted) => {
  expect(Math.sign(compareVersionTexts(a, b))).toBe(wanted);
});
