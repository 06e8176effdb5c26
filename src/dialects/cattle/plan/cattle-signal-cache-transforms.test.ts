/**
 * Proves that the caches keep what the turns read and what Refit writes back, and that they drop the templates of Jobs.
 */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import type { Condition, Job, Pod } from '../../../kube/resources.ts';
import { DEFAULT_JOB_SETTINGS } from './config.ts';
import { jobOf } from './job.ts';
import { trimJob } from './plan-jobs.ts';
import { stallIn, trimPod } from './pods.ts';
import { STAMP_ANNOTATION } from './stamps.ts';

const config = { name: 'c', namespace: 'system-upgrade', job: DEFAULT_JOB_SETTINGS };
const rendering = {
  plan: buildCattlePlan('p'),
  node: buildNode('w1'),
  version: 'v1',
  hash: 'h',
  settings: config.job,
};
const made = jobOf(config, rendering);
const withConditions = (...conditions: Partial<Condition>[]): Job => ({
  ...made,
  status: { active: 1, conditions: conditions as Condition[] },
});

test.each([
  ['works', withConditions()],
  ['is complete', withConditions({ type: 'Complete', status: 'True' })],
])('a Job that %s is kept without template and stamp', (_name, job) => {
  const kept = trimJob(job);
  const { [STAMP_ANNOTATION]: _stamp, ...annotations } = job.metadata.annotations ?? {};
  const { template: _template, ...spec } = job.spec ?? {};
  expect(kept).toEqual({ ...job, metadata: { ...job.metadata, annotations }, spec });
  expect(JSON.stringify(kept).length * 3).toBeLessThan(JSON.stringify(job).length);
});

test.each([
  ['is paused, which is written back', { ...made, spec: { ...made.spec, parallelism: 0 } }],
  ['failed, whose stamp is compared', withConditions({ type: 'Failed', status: 'True' })],
])('a Job that %s is kept whole', (_name, job) => {
  expect(trimJob(job)).toBe(job);
});

test.each<[string, Pod['status']]>([
  ['runs', { phase: 'Running', containerStatuses: [{ name: 'upgrade', state: {} }] }],
  ['was evicted', { phase: 'Failed', reason: 'Evicted', message: 'low on memory' }],
  [
    'has no place',
    { conditions: [{ type: 'PodScheduled', status: 'False', message: 'no nodes' }] },
  ],
  [
    'lacks its image',
    { initContainerStatuses: [{ name: 'drain', state: { waiting: { reason: 'ErrImagePull' } } }] },
  ],
])('of a pod that %s the cache has what is told', (_name, status) => {
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'u' }];
  const pod: Pod = {
    metadata: { name: 'p', uid: 'x', ownerReferences },
    spec: { nodeName: 'w1' },
    ...(status ? { status } : {}),
  };
  const kept = trimPod(pod);
  expect(stallIn(kept)).toBe(stallIn(pod));
  expect([kept.metadata.ownerReferences, kept.spec]).toEqual([ownerReferences, undefined]);
});
