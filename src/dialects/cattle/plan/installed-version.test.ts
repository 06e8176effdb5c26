import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import {
  doubtAbout,
  INSTALLS_ANNOTATION,
  installedBy,
  installsKubernetes,
  isInstaller,
  plannedVersion,
} from './installed-version.ts';

function planWith(image: string, installs?: string): CattlePlan {
  const plan = buildCattlePlan('p', { upgrade: { image } });
  if (installs === undefined) return plan;
  return {
    ...plan,
    metadata: { ...plan.metadata, annotations: { [INSTALLS_ANNOTATION]: installs } },
  };
}

test.each([
  ['rancher/k3s-upgrade', true],
  ['rancher/rke2-upgrade:v1.2.3-rke2r1', true],
  ['k3s-upgrade', true],
  ['example.com:5000/a/k3s-upgrade@sha256:00', true],
  ['example.com:5000/a/k3s-upgrade:v1@sha256:00', true],
  ['example.com/k3s-upgrade/other', false],
  ['example.com/my-k3s-upgrade', false],
  ['example.com/k3s-upgrader', false],
  ['example.com/mirrored-k3s', false],
  ['', false],
])('the name of the image %s says whether it installs Kubernetes: %s', (image, expected) => {
  expect(isInstaller(image)).toBe(expected);
});

test('a mirror with another name installs Kubernetes if the environment of the controller lists it', () => {
  const mirrors = ['mirrored-k3s', 'example.com:5000/b/up:v1'];
  expect(isInstaller('example.com/mirrored-k3s:v1.2.3', mirrors)).toBe(true);
  expect(isInstaller('example.com:5000/b/up@sha256:00', mirrors)).toBe(true);
  expect(isInstaller('example.com/b/up', mirrors)).toBe(false);
  expect(isInstaller('example.com/not-mirrored-k3s', mirrors)).toBe(false);
});

test.each([
  ['rancher/k3s-upgrade', 'other', false],
  ['example.com/script', 'kubernetes', true],
  ['rancher/k3s-upgrade', 'something', true],
  ['example.com/script', 'something', false],
])('the image %s with the annotation %s installs Kubernetes: %s', (image, installs, expected) => {
  expect(installsKubernetes(planWith(image, installs))).toBe(expected);
});

test.each([
  ['rancher/k3s-upgrade', 'v1.36.3-k3s1', { version: 'v1.36.3+k3s1' }],
  ['rancher/k3s-upgrade', '1.36.3-k3s1', { version: 'v1.36.3+k3s1', unpublished: '1.36.3-k3s1' }],
  ['rancher/k3s-upgrade', 'v1.36.3', { version: 'v1.36.3', unpublished: 'v1.36.3' }],
  [
    'rancher/k3s-upgrade',
    'v1.36.3-rke2r1',
    { version: 'v1.36.3+rke2r1', unpublished: 'v1.36.3-rke2r1' },
  ],
  [
    'example.com/rke2-upgrade',
    'v1.36.3-k3s1',
    { version: 'v1.36.3+k3s1', unpublished: 'v1.36.3-k3s1' },
  ],
  ['rancher/rke2-upgrade', 'v1.36.3-rc1-rke2r1', { version: 'v1.36.3+rke2r1' }],
  ['rancher/k3s-upgrade:v1.36.3-k3s1', 'v1.36.3-k3s1', { version: 'v1.36.3+k3s1' }],
  ['rancher/k3s-upgrade:v1.36.3-rc2-k3s1', 'v1.36.3-k3s1', { version: 'v1.36.3+k3s1' }],
  [
    'example.com:5000/k3s-upgrade:v1.36.4-k3s1',
    'v1.36.3-k3s1',
    { version: 'v1.36.4+k3s1', planned: 'v1.36.3-k3s1' },
  ],
  ['rancher/k3s-upgrade:v1.36.4-k3s1', '', { version: 'v1.36.4+k3s1' }],
  ['example.com:5000/k3s-upgrade@sha256:00', 'v1.36.3-k3s1', { version: 'v1.36.3+k3s1' }],
  [
    'rancher/k3s-upgrade:v1.36.4-k3s1@sha256:00',
    'v1.36.3-k3s1',
    { version: 'v1.36.4+k3s1', planned: 'v1.36.3-k3s1' },
  ],
])(
  'the image %s of a Plan at %s installs the version that its kubelets will report',
  (image, latest, expected) => {
    expect(installedBy(planWith(image), latest)).toEqual({ kind: 'kubernetes', ...expected });
  },
);

test.each([
  ['rancher/k3s-upgrade:latest', 'v1.36.3-k3s1', 'latest'],
  ['rancher/k3s-upgrade:v1.36', 'v1.36.3-k3s1', 'v1.36'],
  ['rancher/k3s-upgrade', 'bionic', 'bionic'],
])(
  'the image %s of a Plan at %s installs a version that nobody can verify',
  (image, latest, tag) => {
    expect(installedBy(planWith(image), latest)).toEqual({ kind: 'unverifiable', tag });
  },
);

test('a Plan with any other image installs something else, whatever its version is', () => {
  expect(installedBy(planWith('example.com/script:v1.36.3'), 'v1.36.3')).toEqual({ kind: 'other' });
});

test('a Plan with a channel plans no version in its spec', () => {
  expect(plannedVersion(buildCattlePlan('p', { version: 'v1.2.3+k3s1' }))).toBe('v1.2.3-k3s1');
  expect(plannedVersion(buildCattlePlan('p', { version: '', channel: 'https://a' }))).toBe(
    undefined,
  );
});

test('the author of a Plan reads that the tag and the version differ, and that a tag is no version', () => {
  expect(doubtAbout({ kind: 'other' })).toBe(undefined);
  expect(doubtAbout({ kind: 'kubernetes', version: 'v1.36.3+k3s1' })).toBe(undefined);
  expect(doubtAbout({ kind: 'unverifiable', tag: '' })).toBe(undefined);
  expect(doubtAbout({ kind: 'unverifiable', tag: 'latest' })).toBe(
    'the image installs "latest", which is no version, so Refit cannot compare it with the versions of the nodes; use for example v1.36.3-k3s1',
  );
  expect(doubtAbout({ kind: 'kubernetes', version: 'v1.36.4+k3s1', planned: 'v1.36.3-k3s1' })).toBe(
    'the tag of the image installs v1.36.4+k3s1, but the version of the Plan is v1.36.3-k3s1; the tag counts, so remove the tag or name the same version',
  );
});

test('the author of a Plan reads that no release of the image has the tag which the Job would pull', () => {
  expect(doubtAbout({ kind: 'kubernetes', version: 'v1.36.3', unpublished: 'v1.36.3' })).toBe(
    'the Job would pull the image with the tag v1.36.3, but its releases have tags such as v1.36.3-k3s1 or v1.36.3-rke2r1, so no pod can start; correct the version or the image',
  );
});
