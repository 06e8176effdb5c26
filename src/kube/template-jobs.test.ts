/** Tests which existing Jobs count as the Job that a template describes. */
import { expect, test, vi } from 'vitest';
import type { KubeClient } from './client.ts';
import type { Job } from './resources.ts';
import { StatusError, TransportError } from './status-error.ts';
import { ForeignJob, templateJobs, UncomparedJob } from './template-jobs.ts';

function buildJob(spec: Record<string, unknown> = {}, image = 'i'): Job {
  return {
    metadata: { name: 'backup', namespace: 'hooks', uid: 'u' },
    spec: {
      completions: 1,
      backoffLimit: 2,
      activeDeadlineSeconds: 90,
      ttlSecondsAfterFinished: 60,
      template: { spec: { containers: [{ name: 'c', image }] } },
      ...spec,
    },
  };
}

/** Looks for `wanted` as a new leader does, which has not created the present Job. */
async function find(present: Job, wanted: Job): Promise<Job | undefined> {
  const client = {
    get: async () => await Promise.resolve(present),
    create: async (_kind: unknown, job: Job) => await Promise.resolve(job),
  } as unknown as KubeClient;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  return await templates.find(wanted, new AbortController().signal);
}

test.each([
  ['deadline', { activeDeadlineSeconds: 600 }],
  ['number of retries', { backoffLimit: 5 }],
  ['time after its end', { ttlSecondsAfterFinished: 3600 }],
])(
  'a Job still counts for a new leader after its %s was changed in the policy',
  async (_title, change) => {
    const present = buildJob();
    expect(await find(present, buildJob(change))).toBe(present);
  },
);

test.each([
  ['runs other pods', buildJob({}, 'other')],
  ['is complete without pods', buildJob({ completions: 0 })],
  ['ends by another rule', buildJob({ podFailurePolicy: { rules: [] } })],
])('a Job that %s does not count', async (_title, present) => {
  await expect(find(present, buildJob())).rejects.toThrow(ForeignJob);
});

const refusal = (code: number, message: string, reason = 'Forbidden') =>
  new StatusError({ kind: 'Status', code, reason, message });

async function findRefused(error: Error): Promise<Job | undefined> {
  const client = {
    get: vi.fn().mockResolvedValue(buildJob()),
    create: vi.fn().mockRejectedValue(error),
  } as unknown as KubeClient;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  return await templates.find(buildJob(), new AbortController().signal);
}

const NO_RIGHT =
  'jobs.batch is forbidden: User "refit" cannot create resource "jobs" in API group "batch" in the namespace "hooks"';
const QUOTA =
  'jobs.batch "backup-x" is forbidden: exceeded quota: few, requested: count/jobs.batch=1';
const POLICY = 'jobs.batch "backup-x" is forbidden: ValidatingAdmissionPolicy denied it';
const DENIED = 'admission webhook "a.example.com" denied the request: no';
const FAILING = 'Internal error occurred: failed calling webhook "a.example.com": refused';

test.each<[string, Error]>([
  ['a missing right', refusal(403, NO_RIGHT)],
  ['a quota', refusal(403, QUOTA)],
  ['an admission policy', refusal(403, POLICY)],
  ['an admission policy that answers 422', refusal(422, POLICY, 'Invalid')],
  ['a webhook that denies with 400', refusal(400, DENIED, 'BadRequest')],
  ['a webhook that fails', refusal(500, FAILING, 'InternalError')],
  ['an overload', refusal(429, 'too many requests', 'TooManyRequests')],
  ['a lost connection', new TransportError('connection reset')],
])('a Job that exists is told as not compared because of %s', async (_, error) => {
  const found = findRefused(error);
  await expect(found).rejects.toThrow(UncomparedJob);
  await expect(found).rejects.toThrow(
    `Job hooks/backup exists, but Refit cannot check that it runs the pods of this template: ${error.message}`,
  );
  await expect(found).rejects.toMatchObject({ cause: error });
});

test.each([
  [400, 'BadRequest', 'Job in version "v1" cannot be handled as a Job: unknown type'],
  [422, 'Invalid', 'Job.batch "backup-x" is invalid: spec.template.spec.containers: Required'],
])(
  'an invalid template (%d) is told in the words of the API server',
  async (code, reason, message) => {
    const error = refusal(code, message, reason);
    await expect(findRefused(error)).rejects.toBe(error);
  },
);
