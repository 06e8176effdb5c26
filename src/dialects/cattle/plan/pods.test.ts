/**
 * Proves that the most common reasons why a pod does not run are reported, and that no reason is reported for a pod
 * that is just starting.
 */
import { expect, test } from 'vitest';
import { buildWorldOf } from '../../../../test/support/builders/worlds-of-kinds.ts';
import { later, SECOND } from '../../../../test/support/clock/times.ts';
import { type Job, jobs, type Pod, pods } from '../../../kube/resources.ts';
import { cattle } from './cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { stallIn, stallOf, trimPod, waitsLong } from './pods.ts';

const waiting = (reason: string, message?: string) => ({
  name: 'upgrade',
  state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
});

test.each<[Pod['status'], string | undefined]>([
  [{ phase: 'Pending', containerStatuses: [waiting('PodInitializing')] }, undefined],
  [{ phase: 'Pending', initContainerStatuses: [waiting('ContainerCreating')] }, undefined],
  [{ phase: 'Running', containerStatuses: [{ name: 'upgrade', state: {} }] }, undefined],
  [{ phase: 'Failed' }, 'its last pod failed'],
  [
    { phase: 'Failed', reason: 'Evicted', message: 'low on memory' },
    'its last pod failed (Evicted: low on memory)',
  ],
  [
    {
      conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available.' }],
    },
    'its pod cannot be scheduled: 0/3 nodes are available',
  ],
  [{ phase: 'Failed', message: 'low on memory' }, 'its last pod failed (low on memory)'],
  [
    { conditions: [{ type: 'PodScheduled', status: 'False' }] },
    'its pod cannot be scheduled: no reason was given',
  ],
  [
    { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3. Why: x' }] },
    'its pod cannot be scheduled: 0/3. Why: x',
  ],
  [{ conditions: [{ type: 'PodScheduled', status: 'True' }] }, undefined],
  [{ conditions: [{ type: 'Initialized', status: 'False' }] }, undefined],
  [
    {
      initContainerStatuses: [waiting('ErrImagePull')],
      containerStatuses: [waiting('PodInitializing')],
    },
    'its container upgrade waits (ErrImagePull)',
  ],
  [undefined, undefined],
  [
    {
      initContainerStatuses: [{ name: 'drain' }],
      containerStatuses: [waiting('ImagePullBackOff', 'Back-off')],
    },
    'its container upgrade waits (ImagePullBackOff: Back-off)',
  ],
  [
    { containerStatuses: [waiting('CrashLoopBackOff')] },
    'its container upgrade waits (CrashLoopBackOff)',
  ],
])('%j', (status, told) => {
  expect(stallIn({ metadata: { name: 'p' }, ...(status ? { status } : {}) })).toBe(told);
});

test('of several pods of a Job the last one counts, and that of another Job says nothing', () => {
  const made = (name: string, uid: string, second: number): Pod => ({
    metadata: {
      name,
      creationTimestamp: later(second * SECOND),
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: uid, uid }],
    },
    status: { phase: 'Failed', reason: name, message: '' },
  });
  const world = buildWorldOf([
    pods,
    [made('first', 'a', 1), made('last', 'a', 3), made('second', 'a', 2), made('other', 'b', 4)],
  ]);
  const job = { metadata: { name: 'a', uid: 'a' } };
  expect(stallOf(job, world)).toBe('its last pod failed (last)');
  expect(stallOf({ ...job, status: { ready: 1 } }, world)).toBeUndefined();
  // Another pod of the Job runs. The watch does not include running pods, so only the status of the Job shows it.
  expect(stallOf({ ...job, status: { active: 1 } }, world)).toBeUndefined();
});

test('a pod that waits is told also while the Job counts it as active', () => {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'a', uid: 'a' };
  const pod: Pod = {
    metadata: { name: 'p', ownerReferences: [owner] },
    status: { phase: 'Pending', containerStatuses: [waiting('ErrImagePull')] },
  };
  const unowned: Pod = { metadata: { name: 'q' }, status: { phase: 'Failed' } };
  const world = buildWorldOf([pods, [pod, unowned]]);
  const stall = (uid: string) =>
    stallOf({ metadata: { name: uid, uid }, status: { active: 1 } }, world);
  expect([stall('a'), stall('b')]).toEqual([
    'its container upgrade waits (ErrImagePull)',
    undefined,
  ]);
});

test('a pod without a time of creation counts as the earliest one', () => {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'a', uid: 'a' };
  const made = (name: string, time?: string): Pod => ({
    metadata: {
      name,
      ownerReferences: [owner],
      ...(time === undefined ? {} : { creationTimestamp: time }),
    },
    status: { phase: 'Failed', reason: name },
  });
  const world = buildWorldOf([pods, [made('dated', later(0)), made('undated')]]);
  expect(stallOf({ metadata: { name: 'a', uid: 'a' } }, world)).toBe('its last pod failed (dated)');
});

test('the cache keeps of a pod what explains a stall, and nothing else', () => {
  const unscheduled = { type: 'PodScheduled', status: 'False', message: 'no nodes' } as const;
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'a', uid: 'a' };
  const kept = { name: 'p', uid: 'x', ownerReferences: [owner] };
  const whole: Pod = {
    metadata: { ...kept, labels: { a: 'b' }, annotations: { a: 'b' }, managedFields: [] },
    spec: { nodeName: 'w1' },
    status: {
      phase: 'Pending',
      reason: 'why',
      message: 'words',
      conditions: [{ type: 'Initialized', status: 'True' }, unscheduled],
      initContainerStatuses: [waiting('ErrImagePull')],
      containerStatuses: [{ name: 'upgrade', state: { running: {} } } as { name: string }],
    },
  };
  expect(trimPod(whole)).toEqual({
    metadata: kept,
    status: {
      phase: 'Pending',
      reason: 'why',
      message: 'words',
      conditions: [unscheduled],
      initContainerStatuses: [waiting('ErrImagePull')],
      containerStatuses: [{ name: 'upgrade', state: {} }],
    },
  });
  const nothing = { conditions: [], initContainerStatuses: [], containerStatuses: [] };
  expect(trimPod({ metadata: kept })).toEqual({ metadata: kept, status: nothing });
  const named = { ...whole, status: { containerStatuses: [{ name: 'upgrade' }] } };
  expect(trimPod(named).status?.containerStatuses).toEqual([{ name: 'upgrade', state: {} }]);
});

test.each<[string, Job['status'], number, boolean]>([
  ['it has just started', { active: 1, startTime: later(0) }, 9, false],
  ['its time is just over', { active: 1, startTime: later(0) }, 10, false],
  ['a pod failed, and another one runs', { ready: 1, failed: 1, startTime: later(0) }, 1, true],
  ['it has no status yet', undefined, 31, false],
  ['its pod does not run', { active: 1, startTime: later(0) }, 11, true],
  ['its pod runs', { active: 1, ready: 1, startTime: later(0) }, 11, false],
  ['a pod failed', { active: 1, failed: 1, startTime: later(0) }, 1, true],
  ['our clock is behind', { active: 1, startTime: later(0) }, -11, true],
  ['it was just resumed after a drain', {}, 31, false],
])('pods are read once a Job waits long for its own: %s', (_name, status, seconds, isLong) => {
  expect(
    waitsLong(
      { metadata: { name: 'a', creationTimestamp: later(0) }, ...(status ? { status } : {}) },
      Date.parse(later(seconds * SECOND)),
    ),
  ).toBe(isLong);
});

test.each([
  ['its pod begins', { active: 1, ready: 1 }, { active: 1, ready: 1, startTime: later(0) }, false],
  [
    'its pod ends',
    { active: 1 },
    { conditions: [{ type: 'SuccessCriteriaMet', status: 'True' }] },
    false,
  ],
  ['it completes', { active: 1 }, { conditions: [{ type: 'Complete', status: 'True' }] }, true],
  ['it fails', { active: 1 }, { conditions: [{ type: 'Failed', status: 'True' }] }, true],
  ['its first pod fails', { active: 1 }, { failed: 1 }, true],
  ['another pod begins after one that failed', { failed: 1 }, { failed: 1, active: 1 }, true],
] as const)('a Job wakes its Plan where something is decided: %s', (_, before, after, wanted) => {
  expect(wakes({ status: before }, { status: after } as Partial<Job>)).toBe(wanted);
});

test('a Job that somebody starts wakes its Plan', () => {
  expect(wakes({ spec: { parallelism: 0 } }, { spec: { parallelism: 1 } })).toBe(true);
});

function wakes(before: Partial<Job>, after: Partial<Job>): boolean | undefined {
  const dialect = cattle({
    name: 'controller',
    namespace: 'system-upgrade',
    job: DEFAULT_JOB_SETTINGS,
  });
  const watched = dialect.watched.find(({ resource }) => resource === jobs);
  const metadata = { name: 'a', uid: 'a' };
  return watched?.isRelevant({ metadata, ...before }, { metadata, ...after });
}
