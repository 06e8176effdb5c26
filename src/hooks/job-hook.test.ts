/** Tests the Job of a hook: its content, and the state that its status means. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import type { Job } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { templateJobs } from '../kube/template-jobs.ts';
import { jobOfRun, lookAtJob } from './job-hook.ts';
import type { HookRun, JobAction } from './rules.ts';

function action(spec: Record<string, unknown>, more: Partial<JobAction> = {}): JobAction {
  const common = { kind: 'job', namespace: 'n', pinToNode: false, retries: 2 } as const;
  return { ...common, template: { metadata: { labels: { app: 'x' } }, spec }, ...more };
}

function runOf(of: JobAction): HookRun {
  const hook = { name: 'backup', when: 'beforeDrain', action: of, timeoutMs: 90_500 } as const;
  return { id: 'refit-backup-1', hook, node: 'w1', variables: { REFIT_NODE: 'w1' } };
}

test('a run for the whole plan names no node, and its Job is bound to none', () => {
  const { node: _node, ...run } = runOf(action({ containers: [{ name: 'c', image: 'i' }] }));
  const { metadata, spec } = jobOfRun(run, {
    ...action({ containers: [{ name: 'c', image: 'i' }] }),
    pinToNode: true,
  });
  expect(metadata.annotations).toBeUndefined();
  expect(JSON.stringify(spec)).not.toContain('affinity');
});

test('the Job has the deadline of the hook, and every container has the variables', () => {
  const env = [
    { name: 'REFIT_NODE', value: 'other' },
    { name: 'MINE', value: '$(REFIT_NODE)' },
  ];
  const of = action({
    containers: [{ name: 'c', image: 'i', env }],
    initContainers: [{ name: 'd', image: 'i' }],
    restartPolicy: 'OnFailure',
  });
  const node = { name: 'REFIT_NODE', value: 'w1' };
  expect(jobOfRun(runOf(of), of)).toMatchObject({
    metadata: { name: 'refit-backup-1', namespace: 'n' },
    spec: {
      backoffLimit: 2,
      activeDeadlineSeconds: 91,
      template: {
        metadata: { labels: { app: 'x', 'upgrade.refit.dev/hook': 'backup' } },
        spec: {
          restartPolicy: 'OnFailure',
          containers: [{ name: 'c', env: [node, env[1]] }],
          initContainers: [{ name: 'd', env: [node] }],
        },
      },
    },
  });
});

test('a pinned Job keeps the affinity of its template, and tolerates a cordon', () => {
  const key = 'requiredDuringSchedulingIgnoredDuringExecution';
  const own = [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }, {}];
  const nodeAffinity = { [key]: { nodeSelectorTerms: own } };
  const of = action({ affinity: { nodeAffinity }, containers: [] }, { pinToNode: true });
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['w1'] }];
  expect(jobOfRun(runOf(of), of).spec).toMatchObject({
    template: {
      spec: {
        affinity: {
          nodeAffinity: {
            [key]: { nodeSelectorTerms: [{ ...own[0], matchFields }, { matchFields }] },
          },
        },
        tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }],
      },
    },
  });
});

const OF = action({ containers: [] });
const NOT_FOUND = new StatusError({
  kind: 'Status',
  code: 404,
  reason: 'NotFound',
  message: 'none',
});

/** Looks at a Job once. If `found` or `created` is an error, the API server answers with this error. */
async function look(found: Job['status'] | Error, created?: Error) {
  const stored = { metadata: { name: 'refit-backup-1' }, status: found };
  const client = {
    get: async () =>
      await (found instanceof Error ? Promise.reject(found) : Promise.resolve(stored)),
    create: async () => await (created ? Promise.reject(created) : Promise.resolve(stored)),
  };
  const { signal } = new AbortController();
  const templates = templateJobs(client as unknown as KubeClient, {
    refusalOf: () => undefined,
  });
  return await lookAtJob(templates, runOf(OF), OF, signal);
}

const condition = (type: string, more: object = {}) => ({
  conditions: [{ type, status: 'True' as const, ...more }],
});

test.each<[string, Job['status'] | Error, Error | undefined, string]>([
  ['missing', NOT_FOUND, undefined, 'running: Job n/refit-backup-1 is created'],
  [
    'created by another leader meanwhile',
    NOT_FOUND,
    new StatusError({ kind: 'Status', code: 409, reason: 'AlreadyExists', message: 'x' }),
    'running: Job n/refit-backup-1 is created',
  ],
  [
    'refused as invalid',
    NOT_FOUND,
    new StatusError({ kind: 'Status', code: 422, reason: 'Invalid', message: 'spec.x' }),
    'failed: the API server refuses Job n/refit-backup-1: spec.x',
  ],
  ['running', {}, undefined, 'running: Job n/refit-backup-1 runs'],
  ['complete', condition('Complete'), undefined, 'succeeded: Job n/refit-backup-1 is complete'],
  [
    'failed',
    condition('Failed', { reason: 'DeadlineExceeded', message: 'too long' }),
    undefined,
    'failed: Job n/refit-backup-1 failed: DeadlineExceeded, too long',
  ],
  ['about to fail', condition('FailureTarget'), undefined, 'running: Job n/refit-backup-1 runs'],
])('a Job that is %s', async (_what, found, created, expected) => {
  const { state, message } = await look(found, created);
  expect(`${state}: ${message}`).toBe(expected);
});

test('a Job that may not be created is an error, which is tried again', async () => {
  const forbidden = new StatusError({
    kind: 'Status',
    code: 403,
    reason: 'Forbidden',
    message: 'no right',
  });
  await expect(look(NOT_FOUND, forbidden)).rejects.toThrow(
    'Job n/refit-backup-1 cannot be created: no right',
  );
});
