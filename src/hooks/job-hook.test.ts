/** Tests the Job of a hook: its content, and the state that its status means. */
import { expect, test, vi } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import type { Job } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { ForeignJob, templateJobs, UncomparedJob } from '../kube/template-jobs.ts';
import { jobOfRun, lookAheadAtJob, lookAtJob } from './job-hook.ts';
import {
  type Hook,
  type HookMoment,
  type HookRun,
  isOfPlan,
  type JobAction,
  type PodTemplate,
} from './rules.ts';

function action(spec: Record<string, unknown>, more: Partial<JobAction> = {}): JobAction {
  const common = { kind: 'job', namespace: 'n', pinToNode: false, retries: 2 } as const;
  return { ...common, template: { metadata: { labels: { app: 'x' } }, spec }, ...more };
}

function runOf(of: JobAction): HookRun {
  const hook = { name: 'backup', when: 'beforeDrain', action: of, timeoutMs: 90_500 } as const;
  return { id: 'refit-backup-1', hook, node: 'w1', variables: { REFIT_NODE: 'w1' } };
}

/** Returns the pod template of a Job, which only the API server knows by its type. */
function podsOf({ spec }: Job): PodTemplate {
  return (spec as { readonly template: PodTemplate }).template;
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

test('the Job and its pods are exactly as documented, and keep the metadata of the template', () => {
  const of = action({ containers: [{ name: 'c', image: 'i', env: 'none' }, 'odd'] });
  const metadata = { annotations: { theirs: 'kept' }, labels: { app: 'x' } };
  const template = { ...of.template, metadata };
  const ours = { 'upgrade.refit.dev/hook': 'backup' };
  const onNode = { 'upgrade.refit.dev/hook-node': 'w1' };
  expect(jobOfRun(runOf(of), { ...of, template })).toEqual({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'refit-backup-1', namespace: 'n', labels: ours, annotations: onNode },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: 2,
      activeDeadlineSeconds: 91,
      ttlSecondsAfterFinished: 86_400,
      template: {
        metadata: { labels: { app: 'x', ...ours }, annotations: { theirs: 'kept', ...onNode } },
        spec: {
          restartPolicy: 'Never',
          containers: [
            { name: 'c', image: 'i', env: [{ name: 'REFIT_NODE', value: 'w1' }] },
            'odd',
          ],
        },
      },
    },
  });
});

test('a template without metadata gets the label and the node of the hook', () => {
  const of: JobAction = { ...action({}), template: { spec: { containers: [] } } };
  expect(podsOf(jobOfRun(runOf(of), of)).metadata).toEqual({
    labels: { 'upgrade.refit.dev/hook': 'backup' },
    annotations: { 'upgrade.refit.dev/hook-node': 'w1' },
  });
});

test('a Job for the whole plan keeps the annotations of its template, and adds none', () => {
  const { node: _node, ...run } = runOf(action({ containers: [] }));
  const annotations = { theirs: 'kept' };
  const template = { metadata: { annotations }, spec: { containers: [] } };
  const job = jobOfRun(run, { ...action({}), template });
  expect(podsOf(job).metadata?.annotations).toEqual(annotations);
});

test('a Job that is not pinned is bound to no node', () => {
  const of = action({ containers: [] });
  expect(podsOf(jobOfRun(runOf(of), of)).spec).toEqual({
    restartPolicy: 'Never',
    containers: [],
  });
});

test.each<[what: string, terms: unknown, tolerations: unknown]>([
  ['no terms', [], undefined],
  ['terms that are no list', 'all', 'none'],
])('a pinned Job whose template has %s may run on its node only', (_what, terms, tolerations) => {
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const affinity = { nodeAffinity: required };
  const of = action({ affinity, tolerations, containers: [] }, { pinToNode: true });
  const { spec } = podsOf(jobOfRun(runOf(of), of));
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['w1'] }];
  expect(spec).toMatchObject({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
      },
    },
    tolerations: [
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
    ],
  });
});

test('a pinned Job keeps the tolerations and the fields of its template', () => {
  const own = { key: 'spot', operator: 'Exists' };
  const field = { key: 'metadata.name', operator: 'NotIn', values: ['w9'] };
  const required = { nodeSelectorTerms: [{ matchFields: [field] }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  const of = action({ affinity, tolerations: [own], containers: [] }, { pinToNode: true });
  const spec = JSON.stringify(podsOf(jobOfRun(runOf(of), of)).spec);
  expect(spec).toContain(JSON.stringify(own));
  expect(spec).toContain(
    JSON.stringify([field, { key: 'metadata.name', operator: 'In', values: ['w1'] }]),
  );
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
  [
    'refused as malformed',
    NOT_FOUND,
    new StatusError({ kind: 'Status', code: 400, reason: 'BadRequest', message: 'spec.x' }),
    'failed: the API server refuses Job n/refit-backup-1: spec.x',
  ],
  ['running', {}, undefined, 'running: Job n/refit-backup-1 runs'],
  [
    'without a pod',
    { startTime: '2026-11-20T08:00:00Z' },
    undefined,
    'running: Job n/refit-backup-1 has no pod: check that ServiceAccount n/default exists, and that no quota and no admission policy refuses its pods; Events of the Job say more: kubectl describe job refit-backup-1 -n n',
  ],
  ['complete', condition('Complete'), undefined, 'succeeded: Job n/refit-backup-1 is complete'],
  [
    'failed',
    condition('Failed', { reason: 'DeadlineExceeded', message: 'too long' }),
    undefined,
    'failed: Job n/refit-backup-1 failed: DeadlineExceeded, too long',
  ],
  [
    'failed without a reason',
    condition('Failed', { reason: '' }),
    undefined,
    'failed: Job n/refit-backup-1 failed',
  ],
  ['without a status', undefined, undefined, 'running: Job n/refit-backup-1 runs'],
  [
    'failed for a reason without a message',
    condition('Failed', { reason: 'BackoffLimitExceeded', message: '' }),
    undefined,
    'failed: Job n/refit-backup-1 failed: BackoffLimitExceeded',
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

test('a Job of somebody else under the same name is an error, and no failure of the hook', async () => {
  const foreign = { metadata: { name: 'refit-backup-1', labels: {} } };
  const client = { get: async () => await Promise.resolve(foreign) } as unknown as KubeClient;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  const find = vi.spyOn(templates, 'find').mockRejectedValue(new ForeignJob('whose is it?'));
  const { signal } = new AbortController();
  await expect(lookAtJob(templates, runOf(OF), OF, signal)).rejects.toThrow(/^whose is it\?$/);
  expect(find).toHaveBeenCalledOnce();
});

/** Asks ahead whether the Job of a hook can be created, while the API server answers with the error. */
async function lookAhead(hook: Hook, error?: Error) {
  const asked: Job[] = [];
  const rehearse = async (job: Job): Promise<void> => {
    asked.push(job);
    if (error) throw error;
    await Promise.resolve();
  };
  const said = await lookAheadAtJob({ rehearse }, hook, new AbortController().signal);
  return { said, asked };
}

const status = (code: number, reason: string): StatusError =>
  new StatusError({ kind: 'Status', code, reason, message: 'why' });
const REFUSED = 'no Job can be created in namespace n: why';

test.each<[string, Error | undefined, string | undefined]>([
  ['would create the Job', undefined, undefined],
  ['misses the namespace', status(404, 'NotFound'), REFUSED],
  ['denies the right', status(403, 'Forbidden'), REFUSED],
  ['finds the Job invalid', status(422, 'Invalid'), REFUSED],
  ['is broken', status(500, 'InternalError'), undefined],
])('an API server that %s: a look ahead says so', async (_what, error, expected) => {
  const { hook } = runOf(OF);
  const { said, asked } = await lookAhead(hook, error);
  expect(said).toBe(expected);
  expect(asked.map(({ metadata }) => [metadata.namespace, metadata.name])).toEqual([
    ['n', 'refit-backup-preview'],
  ]);
});

test('a look ahead at a webhook asks nobody', async () => {
  const action = { kind: 'webhook', url: 'https://hooks.example', secretName: 's' } as const;
  const hook = { ...runOf(OF).hook, action };
  expect(await lookAhead(hook, status(404, 'NotFound'))).toEqual({ said: undefined, asked: [] });
});

test.each<[HookMoment, boolean]>([
  ['beforePlan', true],
  ['beforeDrain', false],
  ['afterDrain', false],
  ['beforeRestart', false],
  ['afterVerified', false],
  ['afterPlan', true],
])('a hook of the moment %s runs once for the whole plan: %s', (when, expected) => {
  expect(isOfPlan(when)).toBe(expected);
});

test('a Job that a quota keeps from comparison is not told as one that cannot be created', async () => {
  const templates = templateJobs({} as KubeClient, { refusalOf: () => undefined });
  const error = new UncomparedJob('Job n/refit-backup-1 exists, but …');
  const of = action({ containers: [] });
  const looked = lookAtJob(
    { ...templates, find: async () => await Promise.reject(error) },
    runOf(of),
    of,
    new AbortController().signal,
  );
  await expect(looked).rejects.toBe(error);
});

/** Looks as a new leader does at a Job that exists, while the API server answers the comparison with the error. */
async function lookAtExisting(code: number, reason: string, message: string) {
  const stored = { metadata: { name: 'refit-backup-1', uid: 'u' } };
  const refused = new StatusError({ kind: 'Status', code, reason, message });
  const client = {
    get: vi.fn().mockResolvedValue(stored),
    create: vi.fn().mockRejectedValue(refused),
  } as unknown as KubeClient;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  return await lookAtJob(templates, runOf(OF), OF, new AbortController().signal);
}

test('a Job that exists while a webhook fails is not told as one that cannot be created', async () => {
  const failing = lookAtExisting(500, 'InternalError', 'failed calling webhook "a.example.com"');
  await expect(failing).rejects.toThrow(/^Job n\/refit-backup-1 exists, but/);
});

test('a hook whose template became invalid while its Job exists fails with the words of the API server', async () => {
  expect(await lookAtExisting(422, 'Invalid', 'spec.x')).toEqual({
    state: 'failed',
    message: 'the API server refuses Job n/refit-backup-1: spec.x',
  });
});
