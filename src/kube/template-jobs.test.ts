/** Tests which existing Jobs count as the Job that a template describes. */
import { expect, test, vi } from 'vitest';
import type { KubeClient } from './client.ts';
import type { Job } from './resources.ts';
import { StatusError } from './status-error.ts';
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

const refusal = (code: number, message: string) =>
  new StatusError({ kind: 'Status', code, reason: 'Forbidden', message });

async function findRefused(error: StatusError): Promise<Job | undefined> {
  const client = {
    get: vi.fn().mockResolvedValue(buildJob()),
    create: vi.fn().mockRejectedValue(error),
  } as unknown as KubeClient;
  const templates = templateJobs(client, { refusalOf: () => undefined });
  return await templates.find(buildJob(), new AbortController().signal);
}

test.each([
  [
    'a quota',
    'jobs.batch "backup-x" is forbidden: exceeded quota: few, requested: count/jobs.batch=1',
  ],
  [
    'an admission policy',
    'jobs.batch "backup-x" is forbidden: ValidatingAdmissionPolicy denied it',
  ],
])('a Job that exists is told as not compared if %s refuses the comparison', async (_, message) => {
  const found = findRefused(refusal(403, message));
  await expect(found).rejects.toThrow(UncomparedJob);
  await expect(found).rejects.toThrow(
    `Job hooks/backup exists, but Refit cannot check that it runs the pods of this template: ${message}`,
  );
});

test('a Job that Refit has no right to compare is told with the missing right', async () => {
  const error = refusal(
    403,
    'jobs.batch is forbidden: User "refit" cannot create resource "jobs" in API group "batch" in the namespace "hooks"',
  );
  await expect(findRefused(error)).rejects.toBe(error);
});
