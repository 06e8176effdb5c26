/** Proves which arguments `kubectl drain` gets, and which images get the version as their tag. */
import { expect, test } from 'vitest';
import type { DrainSpec } from '../../../api/cattle/workload.ts';
import { drainArguments, withLatestTag } from './job.ts';

test.each<[string, DrainSpec, string[]]>([
  [
    'without options',
    {},
    ['!upgrade.cattle.io/controller', '--ignore-daemonsets', '--delete-emptydir-data'],
  ],
  [
    'with each option at the value that changes nothing',
    {
      deleteLocalData: true,
      deleteEmptydirData: true,
      ignoreDaemonSets: true,
      force: false,
      disableEviction: false,
      skipWaitForDeleteTimeout: 0,
    },
    ['!upgrade.cattle.io/controller', '--ignore-daemonsets', '--delete-emptydir-data'],
  ],
  [
    'that keeps local data by the earlier name of the option',
    { deleteLocalData: false },
    ['!upgrade.cattle.io/controller', '--ignore-daemonsets'],
  ],
  [
    'that keeps local data',
    { deleteEmptydirData: false },
    ['!upgrade.cattle.io/controller', '--ignore-daemonsets'],
  ],
  [
    'as written',
    {
      podSelector: {
        matchExpressions: [{ key: 'component', operator: 'NotIn', values: ['sonobuoy'] }],
      },
    },
    [
      'component notin (sonobuoy),!upgrade.cattle.io/controller',
      '--ignore-daemonsets',
      '--delete-emptydir-data',
    ],
  ],
  [
    'kubectl drain gets timeout, grace period, force and eviction options from spec.drain',
    {
      timeout: 1_500_000_000,
      gracePeriod: -1,
      force: true,
      disableEviction: true,
      skipWaitForDeleteTimeout: 1,
      deleteEmptydirData: false,
      ignoreDaemonSets: false,
    },
    [
      '!upgrade.cattle.io/controller',
      '--force',
      '--timeout',
      '1.5s',
      '--grace-period',
      '-1',
      '--disable-eviction=true',
      '--skip-wait-for-delete-timeout',
      '1',
    ],
  ],
  [
    'a timeout in words',
    { timeout: '90s', ignoreDaemonSets: false, deleteLocalData: false },
    ['!upgrade.cattle.io/controller', '--timeout', '90s'],
  ],
])(
  'Refit makes the arguments of kubectl drain from spec.drain of the Plan: %s',
  (_name, drain, [selector = '', ...rest]) => {
    expect(drainArguments(drain, 'w1')).toEqual([
      'drain',
      'w1',
      '--pod-selector',
      selector,
      ...rest,
    ]);
  },
);

test.each([
  ['test/image', 'test/image:v1'],
  ['test/image:t', 'test/image:t'],
  ['img.example.com:5000/test/image', 'img.example.com:5000/test/image:v1'],
  ['img.example.com:5000/test/image:t', 'img.example.com:5000/test/image:t'],
  ['docker.io/library/alpine', 'alpine:v1'],
  ['docker.io/a/b', 'a/b:v1'],
  [`a/b@sha256:${'0'.repeat(64)}`, `a/b@sha256:${'0'.repeat(64)}`],
  ['Not An Image', 'Not An Image'],
  ['test/image:', 'test/image:'],
  ['test/image:80', 'test/image:80'],
  ['image:80', 'image:80'],
  ['docker.io/library/library', 'library:v1'],
  ['a', 'a:v1'],
  ['a-b/c_d.e', 'a-b/c_d.e:v1'],
  ['a/b/c/d', 'a/b/c/d:v1'],
  ['Host.example:5/a', 'Host.example:5/a:v1'],
  ['index.docker.io/library/alpine', 'alpine:v1'],
  ['library/alpine', 'alpine:v1'],
  ['docker.io/library/a/b', 'library/a/b:v1'],
  ['library/a/b', 'library/a/b:v1'],
  ['a/library/b', 'a/library/b:v1'],
  ['example.com/docker.io/a', 'example.com/docker.io/a:v1'],
  ['docker-io/a', 'docker-io/a:v1'],
  ['host:port/a', 'host:port/a'],
  ['-a/b', '-a/b:v1'],
  ['a-', 'a-'],
  ['a/B', 'a/B'],
  [' a', ' a'],
  ['a ', 'a '],
  ['', ''],
])('the latest-tag rule: %s', (image, tagged) => {
  expect(withLatestTag(image, 'v1')).toBe(tagged);
});

test.each([
  ['v1.2.3-rc.1_x', 'a:v1.2.3-rc.1_x'],
  ['V', 'a:V'],
  ['_', 'a:_'],
  ['1'.repeat(128), `a:${'1'.repeat(128)}`],
  ['1'.repeat(129), 'a'],
  ['.1', 'a'],
  ['-1', 'a'],
  ['v1+k3s1', 'a'],
  ['v1 ', 'a'],
  [' v1', 'a'],
  ['', 'a'],
])('only a version that can be a tag becomes one: "%s"', (version, tagged) => {
  expect(withLatestTag('a', version)).toBe(tagged);
});
