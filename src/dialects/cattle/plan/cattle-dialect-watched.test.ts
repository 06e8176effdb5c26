/** Proves which objects the controller watches, and which changes of these objects start a turn of a Plan. */
import { expect, test } from 'vitest';
import {
  buildCattlePlan,
  type CattleSpec,
} from '../../../../test/support/builders/cattle-plans.ts';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import {
  type Job,
  jobs,
  type KubeObject,
  nodes,
  type Pod,
  pods,
  type Resource,
  type Secret,
  secrets,
} from '../../../kube/resources.ts';
import { cattle, cattleView } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';

const watchOf = (resource: Resource) =>
  cattle({
    name: 'c',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  }).watched.find((each) => each.resource === resource);
const wakes = (resource: Resource, before: KubeObject, after: KubeObject): boolean | undefined =>
  watchOf(resource)?.isRelevant(before, after);

test('the controller reads Plans, pods and Secrets of its own namespace only, and all Nodes and Jobs', () => {
  const namespaces = [nodes, jobs, cattlePlans, pods, secrets].map(
    (resource) => watchOf(resource)?.namespace,
  );
  const own = 'system-upgrade';
  expect(namespaces).toEqual([undefined, undefined, own, own, own]);
});

test('commands that only read see all namespaces, and need no Secrets', () => {
  expect(cattleView.watched.map(({ resource, namespace }) => [resource, namespace])).toEqual([
    [nodes, undefined],
    [jobs, undefined],
    [cattlePlans, undefined],
    [pods, undefined],
    [{ ...jobs, part: 'image pulls' }, undefined],
    [{ ...pods, part: 'image pulls' }, undefined],
  ]);
});

test('of the Secrets only those are read whose content the hash of a Plan has', () => {
  const plan = buildCattlePlan('p', {
    secrets: [
      { name: 'hashed', path: 'a' },
      { name: 'ignored', path: 'b', ignoreUpdates: true },
    ],
  });
  expect(watchOf(secrets)?.namesIn?.(plan)).toEqual(['hashed']);
});

test.each<[string, Partial<Secret>, boolean]>([
  ['nothing that counts', { type: 'Opaque', data: { a: 'eA==' } }, false],
  [
    'its label',
    { type: 'Opaque', data: { a: 'eA==' }, metadata: { name: 's', labels: {} } },
    false,
  ],
  ['its content', { type: 'Opaque', data: { a: 'eQ==' } }, true],
  ['its type', { type: 'other', data: { a: 'eA==' } }, true],
])('a Secret wakes its Plans if the change may change the hash: %s', (_name, change, wanted) => {
  const before: Secret = { metadata: { name: 's' }, type: 'Opaque', data: { a: 'eA==' } };
  expect(wakes(secrets, before, { ...before, ...change })).toBe(wanted);
});

const endedAt = (
  version: string,
  complete: string,
  spec: Partial<CattleSpec> = {},
  applying: string[] = [],
): CattlePlan => ({
  ...buildCattlePlan('p', spec),
  status: {
    latestVersion: version,
    applying,
    conditions: [{ type: 'Complete', status: complete }],
  },
});

test.each<[string, CattlePlan, boolean]>([
  ['nothing that they wait for', endedAt('v1', 'False', { concurrency: 7 }), false],
  ['it is complete', endedAt('v1', 'True'), true],
  ['it has another version', endedAt('v2', 'False'), true],
  ['it has no status', buildCattlePlan('p'), true],
  ['its spec has another version', endedAt('v1', 'False', { version: 'v9' }), true],
  [
    'it selects other nodes',
    endedAt('v1', 'False', { nodeSelector: { matchLabels: { a: 'b' } } }),
    true,
  ],
  ['a node of it is in progress', endedAt('v1', 'False', {}, ['s1']), true],
])('a Plan wakes the Plans that wait for its end: %s', (_name, after, wanted) => {
  expect(wakes(cattlePlans, endedAt('v1', 'False'), after)).toBe(wanted);
});

test('a pod wakes its Plan if it tells something else', () => {
  const pod = (reason: string): Pod => ({
    metadata: { name: 'p' },
    status: { containerStatuses: [{ name: 'a', state: { waiting: { reason } } }] },
  });
  expect(wakes(pods, pod('ErrImagePull'), pod('ErrImagePull'))).toBe(false);
  expect(wakes(pods, pod('ErrImagePull'), pod('ImagePullBackOff'))).toBe(true);
});

const LONG_AGO: Job = {
  metadata: { name: 'j' },
  status: { active: 1, startTime: later(-MINUTE) },
};

test.each<[string, readonly Job[], boolean]>([
  ['there is no Job', [], false],
  ['a Job has no pod for long', [LONG_AGO], true],
  ['one of several has none', [{ ...LONG_AGO, status: { active: 1, ready: 1 } }, LONG_AGO], true],
  ['its pod is ready', [{ ...LONG_AGO, status: { ...LONG_AGO.status, ready: 1 } }], false],
  [
    'that Job has ended',
    [{ ...LONG_AGO, status: { failed: 1, conditions: [{ type: 'Failed', status: 'True' }] } }],
    false,
  ],
])('pods are read only if they may explain why a Job stands: %s', (_name, made, wanted) => {
  expect(watchOf(pods)?.isNeeded?.(buildWorldOf([jobs, made]), T0)).toBe(wanted);
});

test('pods need no right, and neither running nor succeeded ones are read', () => {
  expect(watchOf(pods)).toMatchObject({
    optional: true,
    advisory: true,
    labelSelector: 'upgrade.cattle.io/plan',
    fieldSelector: 'status.phase!=Running,status.phase!=Succeeded',
  });
});

const JOB: Job = { metadata: { name: 'j', uid: 'u' }, spec: { parallelism: 1 } };
const HELD = { 'refit.upgrade.cattle.io/drained-by-leader': 'true' };
const held: Job = {
  ...JOB,
  metadata: { ...JOB.metadata, annotations: HELD },
  spec: { parallelism: 1, suspend: true },
};

test.each<[string, Job, Job, boolean]>([
  ['only its resource version changed', JOB, { ...JOB, metadata: { ...JOB.metadata } }, false],
  ['another Job has its name', JOB, { ...JOB, metadata: { name: 'j', uid: 'other' } }, true],
  ['it is released after a drain', held, { ...held, spec: { parallelism: 1 } }, true],
  [
    'one more pod failed',
    { ...JOB, status: { failed: 1 } },
    { ...JOB, status: { failed: 2 } },
    true,
  ],
  [
    'no pod failed, as said in another way',
    JOB,
    { ...JOB, status: { failed: 0, active: 1 } },
    false,
  ],
])('a Job wakes its Plan where something is decided: %s', (_name, before, after, wanted) => {
  expect(wakes(jobs, before, after)).toBe(wanted);
});
