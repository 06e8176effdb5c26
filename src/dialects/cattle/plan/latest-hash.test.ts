/** Proves that versions and hashes equal the versions and hashes of the original. */
import { describe, expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import type { Secret } from '../../../kube/resources.ts';
import { hashedSecrets, latestHash, secretHash } from './latest.ts';
import { mungeVersion } from './names.ts';

const secret = (name: string, type: string, data?: Record<string, string>): Secret => ({
  metadata: { name },
  type,
  ...(data
    ? {
        data: Object.fromEntries(
          Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
        ),
      }
    : {}),
});

const digesting = (paths: string, spec: Partial<CattleSpec>): CattlePlan => {
  const { metadata } = buildCattlePlan('digest');
  return {
    metadata: { ...metadata, annotations: { 'upgrade.cattle.io/digest': paths } },
    spec: { upgrade: { image: 'img' }, ...spec },
  };
};

describe('the hash', () => {
  test.each([
    ['v1.27.6-k3s1', 'system-upgrade', '0e4e3f4e3f8b1e811d841099cb49e4712b93833bee0604115b9a141c'],
    [
      'v1.23.6-rke2r1',
      'system-upgrade',
      'd5c507264ef83171925233cdeebe1f8a21614263918690682ef945fe',
    ],
    [
      'release-v2021-8',
      'system-upgrade',
      'c00768bbe1d4a4bd6790aaafc961ae5df35aba84282909d7a87b49b2',
    ],
    ['v1.17.6-k3s1', 'system-upgrade', '842bd0625d5c3225c5f50ac41b38ff3b5fc8e73d154bf982e19795df'],
    ['v0.10.0', 'k3os-upgrade', '539c669e033d2412b0a998e19d789809e8cab1f1dc650802cd4548c3'],
    ['', '', 'd14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f'],
  ])('of version "%s" and service account "%s"', (version, serviceAccountName, hash) => {
    expect(latestHash(buildCattlePlan('p', { serviceAccountName }), version, [])).toBe(hash);
  });

  test('the hash of a Plan includes the data of its Secrets', () => {
    const plan = buildCattlePlan('p', { serviceAccountName: 'system-upgrade' });
    const bionic = secret('bionic', 'Opaque', { curl: '7.58.0' });
    expect(secretHash(bionic)).toBe('kk48hm5h64');
    const hash = '1ac8a41bfd33d8a67c53f18cc8bd0d6b911340a696231125cc7d931a';
    expect(latestHash(plan, 'bionic', [bionic])).toBe(hash);
  });

  test('the hash of a Plan includes the fields in its digest annotation, as the Plan writes them', () => {
    const spec = {
      concurrency: 0,
      drain: { timeout: 120, gracePeriod: -1, podSelector: { matchLabels: { q: 'r' } } },
      upgrade: { image: ' img ' },
    };
    const plan = digesting('spec.drain, spec.concurrency,spec.upgrade.image', spec);
    expect(latestHash(plan, 'v1.2.3', [])).toBe(
      'e28cf1a2a095ee6eb2055d5288dfa3d3fd4fedf87bf0caf768d830d9',
    );
  });

  test.each(['constructor', 'spec.toString', '__proto__', 'spec.upgrade.constructor.name'])(
    'the path %s names no field, although every object of JavaScript has one of that name',
    (path) => {
      const spec = { upgrade: { image: 'img' } };
      const nothing = latestHash(digesting('spec.nothing', spec), 'v1.2.3', []);
      expect(latestHash(digesting(path, spec), 'v1.2.3', [])).toBe(nothing);
    },
  );

  test('counts maps, lists, numbers, durations and what is not there', () => {
    const names = [
      'upgrade',
      'concurrency',
      'drain.timeout',
      'drain.force',
      'upgrade.envs',
      'nodeSelector',
      'tolerations',
    ];
    const paths = [...names, 'postCompleteDelay', 'nothing.here'];
    const plan = digesting(paths.map((path) => `spec.${path}`).join(','), {
      concurrency: 7,
      nodeSelector: {
        matchLabels: { b: '2', a: '1' },
        matchExpressions: [{ key: 'k', operator: 'In', values: ['x', 'w'] }],
      },
      tolerations: [{ key: 'a', operator: 'Exists' }, { key: 'b' }],
      postCompleteDelay: '90s',
      drain: { timeout: '90s', force: true },
      upgrade: {
        image: 'img',
        command: ['sh', '-c'],
        args: ['a b', '<&>'],
        envs: [{ name: 'X', value: '1' }],
      },
    });
    expect(latestHash(plan, 'v1.2.3', [])).toBe(
      'c049cda13f80725db96600d7e2aa51efff5ce3473bb0c14d2c635695',
    );
  });
});

test.each([
  ['no data', {}, 't75bgf6ctb'],
  ['one empty value', { one: '' }, '74bd68bm66'],
  ['three values', { one: '', two: '2', three: '3' }, 'dgcb6h9tmk'],
])('the hash of a Secret with %s', (_name, data, hash) => {
  expect(secretHash(secret('', 'my-type', data))).toBe(hash);
});

test('a Secret whose updates are ignored does not count', () => {
  const secrets = [
    { name: 'a', path: 'a' },
    { name: 'b', path: 'b', ignoreUpdates: true },
    { name: 'c', path: 'c', ignoreUpdates: false },
  ];
  expect(hashedSecrets(buildCattlePlan('p', { secrets }))).toEqual(['a', 'c']);
});

test('Refit replaces every + in a version with -', () => {
  expect(mungeVersion('v1.2.3+test+more')).toBe('v1.2.3-test-more');
});
