/** Tests which existing Jobs count as the Job that a template describes. */
import { expect, test } from 'vitest';
import type { KubeClient } from './client.ts';
import type { Job } from './resources.ts';
import { ForeignJob, templateJobs } from './template-jobs.ts';

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
