/** Tests what Refit says about a Job for which Kubernetes cannot create a pod. */
import { expect, test } from 'vitest';
import { lackOfPods } from './podless-jobs.ts';
import type { Job } from './resources.ts';

const begun = { startTime: '2026-11-20T08:00:00Z' };
const jobWith = (status: Job['status'], spec: Job['spec'] = {}): Job => ({
  metadata: { name: 'j', namespace: 'n' },
  spec,
  ...(status && { status }),
});

test('a Job that has begun without a pod names the ServiceAccount that may be missing', () => {
  expect(lackOfPods(jobWith(begun), 'upgrader')).toMatch(
    /^has no pod: check that ServiceAccount n\/upgrader exists.*kubectl describe job j -n n$/,
  );
  expect(lackOfPods(jobWith({ ...begun, active: 0 }), undefined)).toContain('n/default');
});

test.each<[string, Job]>([
  ['has not begun', jobWith({})],
  ['has a pod', jobWith({ ...begun, active: 1 })],
  ['had a pod that failed', jobWith({ ...begun, failed: 1 })],
  ['had a pod that succeeded', jobWith({ ...begun, succeeded: 1 })],
  ['is suspended', jobWith(begun, { suspend: true })],
  ['is paused', jobWith(begun, { parallelism: 0 })],
  ['is complete', jobWith({ ...begun, conditions: [{ type: 'Complete', status: 'True' }] })],
])('a Job that %s lacks no pod', (_what, job) => {
  expect(lackOfPods(job, 'x')).toBeUndefined();
});
