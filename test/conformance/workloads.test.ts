/** Tests the conformance of Jobs and Secrets: which fields get defaults, and which fields stay unchanged. */
import { whyNotSince } from '../testenv/since.ts';
import { get, merge, post, put, type RequestStep } from './harness/case.ts';
import { conformance } from './harness/suite.ts';

const JOBS = '/apis/batch/v1/namespaces/$ns/jobs';
const SECRETS = '/api/v1/namespaces/$ns/secrets';

/**
 * All fields are set, so that no default of pods is compared. The Job has no parallelism, so no controller creates a
 * pod.
 */
const POD = {
  restartPolicy: 'Never',
  dnsPolicy: 'ClusterFirst',
  schedulerName: 'default-scheduler',
  securityContext: {},
  terminationGracePeriodSeconds: 30,
  containers: [
    {
      name: 'a',
      image: 'a:1',
      imagePullPolicy: 'Always',
      resources: {},
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    },
  ],
};
const job = (spec: object, metadata: object = {}): object => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'one', ...metadata },
  spec: { template: { spec: POD }, ...spec },
});
const secret = (more: object): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'one' },
  ...more,
});

const testCase = conformance('workloads');

testCase('a new Job is complete, and its pods are told from those of others', [
  post(JOBS, job({ parallelism: 0 })),
]);
testCase('what a Job is given stays; its labels are those of its pods where it has none', [
  post(
    JOBS,
    job({
      parallelism: 0,
      completions: 1,
      backoffLimit: 0,
      activeDeadlineSeconds: 5,
      ttlSecondsAfterFinished: 0,
      template: { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } }, spec: POD },
    }),
  ),
]);
testCase('a Job that says nothing of its own runs one pod', [post(JOBS, job({ suspend: true }))]);
testCase('a Job with labels of its own', [
  post(JOBS, job({ parallelism: 0 }, { labels: { e: 'f' } })),
]);
testCase('a Job of the wrong types', [
  post(JOBS, job({ parallelism: 'many' })),
  post(JOBS, job({ template: [] })),
]);
testCase('a Secret is opaque, and its texts become data', [
  post(SECRETS, secret({ data: { a: 'YQ==' }, stringData: { b: 'b', c: '' } })),
  get(`${SECRETS}/one`),
  put(`${SECRETS}/one`, secret({ stringData: { b: 'd' } })),
  get(`${SECRETS}/one`),
]);
testCase('a Secret of a type', [post(SECRETS, secret({ type: 'my-type', immutable: true }))]);

const AT = '2026-11-20T08:00:00Z';
const TIMES = { startTime: AT, completionTime: AT };
const conditions = (...types: readonly string[]): object[] =>
  types.map((type) => ({ type, status: 'True', lastProbeTime: AT, lastTransitionTime: AT }));
const finish = (status: object): RequestStep => merge(`${JOBS}/one/status`, { status });

testCase(
  'a Job finishes with its times, and with the condition that says why',
  [
    // The Job controller leaves this Job alone.
    post(JOBS, job({ parallelism: 0, managedBy: 'example.com/controller' })),
    finish({ conditions: conditions('Complete') }),
    finish({ ...TIMES, conditions: conditions('Complete') }),
    finish({ startTime: AT, conditions: conditions('Failed') }),
    finish({ ...TIMES, conditions: conditions('SuccessCriteriaMet', 'Complete') }),
  ],
  whyNotSince(32, 'leaves a Job with managedBy to another controller'),
);
