/**
 * Tests the health check that a Job from a template succeeds: one Job at a time, a new Job when the result is too old,
 * and one result for all leaders.
 */
import { expect, test } from 'vitest';
import type { DeleteOptions, KubeClient } from '../kube/client.ts';
import type { Condition, Job } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { templateJobs } from '../kube/template-jobs.ts';
import { rfc3339 } from '../util/clock.ts';
import { askJobs } from './ask-jobs.ts';
import type { CheckFinding, JobCheck } from './checks.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const START = Date.UTC(2026, 0, 1);

const CHECK: JobCheck = {
  kind: 'jobs',
  name: 'smoke',
  namespace: 'tests',
  spec: { template: { spec: { containers: [{ name: 'c', image: 'smoke' }] } } },
  timeoutMs: 5 * MINUTE,
  everyMs: 5 * MINUTE,
};

interface Question {
  readonly after?: number;
  /** Milliseconds that pass before the question. */
  readonly ms?: number;
  readonly check?: JobCheck;
  readonly policy?: string;
  /** The reason why the namespace may have no Jobs. */
  readonly refusal?: string;
}

/** An API server that stores Jobs. The test itself acts as the Job controller. */
class Rig {
  readonly jobs = new Map<string, Job>();
  readonly written: string[] = [];
  now = START;
  #uids = 0;

  readonly client = {
    get: async (_kind: unknown, name: string) =>
      await Promise.resolve(this.jobs.get(name) ?? fail(404, 'NotFound')),
    create: async (_kind: unknown, job: Job, { dryRun }: { dryRun?: boolean } = {}) => {
      const { name } = job.metadata;
      if (dryRun === true) return await Promise.resolve(job);
      if (this.jobs.has(name)) fail(409, 'AlreadyExists');
      const uid = `uid-${this.#uids++}`;
      this.written.push(`create ${uid}`);
      const created = { ...job, metadata: { ...job.metadata, uid } };
      this.jobs.set(name, created);
      return await Promise.resolve(created);
    },
    delete: async (_kind: unknown, name: string, { uid, ...how }: DeleteOptions) => {
      this.written.push(`delete ${uid}`);
      expect(how).toMatchObject({ namespace: 'tests', propagationPolicy: 'Background' });
      this.jobs.delete(name);
      await Promise.resolve();
    },
  } as unknown as KubeClient;

  get job(): Job {
    const [job] = this.jobs.values();
    return job ?? expect.fail('there is no Job');
  }

  async ask(more: Question = {}): Promise<CheckFinding> {
    this.now += more.ms ?? 0;
    const { after = 0, policy = 'nightly' } = more;
    const need = { policy, after, now: this.now };
    const { client } = this;
    const templates = templateJobs(client, { refusalOf: () => more.refusal });
    const { signal } = new AbortController();
    return await askJobs({ client, templates }, more.check ?? CHECK, need, signal);
  }

  ends(type: 'Complete' | 'Failed', message = '', more: Partial<Condition> = {}): void {
    const lastTransitionTime = rfc3339(this.now);
    const condition = { type, status: 'True' as const, message, lastTransitionTime, ...more };
    this.change({ status: { conditions: [condition] } });
  }

  change(more: Partial<Job>): void {
    this.jobs.set(this.job.metadata.name, { ...this.job, ...more });
  }
}

function fail(code: number, reason: string): never {
  throw new StatusError({ kind: 'Status', code, reason });
}

test('the Job that is created', async () => {
  const rig = new Rig();
  expect(await rig.ask()).toEqual({
    state: 'unknown',
    isPending: true,
    message: expect.stringMatching(/^Job tests\/refit-smoke-[0-9a-f]{10} starts$/) as string,
  });
  const { metadata, spec, ...type } = rig.job;
  expect(type).toMatchObject({ apiVersion: 'batch/v1', kind: 'Job' });
  expect(metadata.name).toMatch(/^refit-smoke-[0-9a-f]{10}$/);
  expect(metadata).toMatchObject({
    namespace: 'tests',
    labels: { 'app.kubernetes.io/managed-by': 'refit', 'upgrade.refit.dev/health-check': 'smoke' },
    annotations: { 'upgrade.refit.dev/policy': 'nightly' },
  });
  expect(spec).toEqual({
    activeDeadlineSeconds: 300,
    backoffLimit: 0,
    ttlSecondsAfterFinished: 3600,
    template: {
      spec: {
        restartPolicy: 'Never',
        automountServiceAccountToken: false,
        containers: [{ name: 'c', image: 'smoke' }],
      },
    },
  });
});

test('what the template sets stays, but the time limit', async () => {
  const rig = new Rig();
  const pod = { automountServiceAccountToken: true, restartPolicy: 'OnFailure' };
  const own = { backoffLimit: 3, ttlSecondsAfterFinished: 1 };
  const spec = { ...own, activeDeadlineSeconds: 9_000, template: { spec: pod } };
  await rig.ask({ check: { ...CHECK, spec } });
  expect(rig.job.spec).toEqual({ ...own, activeDeadlineSeconds: 300, template: { spec: pod } });
});

test('a Job that runs is pending, its success holds for a time, and then one more runs', async () => {
  const rig = new Rig();
  await rig.ask();
  expect(await rig.ask({ ms: 12 * SECOND })).toMatchObject({
    state: 'unknown',
    isPending: true,
    message: expect.stringMatching(/^Job tests\/refit-smoke-\w+ has run for 12 s$/),
  });
  rig.ends('Complete');
  const passing = { state: 'passing', at: START };
  expect(await rig.ask()).toMatchObject(passing);
  expect(await rig.ask({ ms: 4 * MINUTE })).toMatchObject(passing);
  expect(rig.written).toEqual(['create uid-0']);
  expect(await rig.ask({ ms: MINUTE })).toMatchObject({ isPending: true });
  expect(rig.written).toEqual(['create uid-0', 'delete uid-0', 'create uid-1']);
});

test('a Job that has begun without a pod says so, and names the ServiceAccount', async () => {
  const rig = new Rig();
  const spec = { serviceAccountName: 'prober', containers: [{ name: 'c', image: 'smoke' }] };
  const check = { ...CHECK, spec: { template: { spec } } };
  await rig.ask({ check });
  const { name } = rig.job.metadata;
  rig.jobs.set(name, { ...rig.job, status: { startTime: rfc3339(START) } });
  const { state, message } = await rig.ask({ check, ms: 12 * SECOND });
  expect(state).toBe('unknown');
  expect(message).toContain(`Job tests/${name} has no pod: check that ServiceAccount tests/prober`);
  rig.jobs.set(name, { ...rig.job, status: { startTime: rfc3339(START), active: 1 } });
  expect((await rig.ask({ check })).message).toContain('has run for 12 s');
});

test('a success from before the time that is needed does not count', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Complete');
  expect(await rig.ask({ ms: SECOND, after: START + SECOND })).toMatchObject({ isPending: true });
  rig.ends('Complete');
  expect(await rig.ask({ after: START + SECOND })).toMatchObject({
    state: 'passing',
    at: START + SECOND,
  });
});

test.each(['Complete', 'Failed'] as const)(
  'the result %s of a Job whose start lies in the future, because a clock was set back, does not count',
  async (type) => {
    const rig = new Rig();
    await rig.ask({ ms: 60 * MINUTE });
    rig.ends(type);
    const after = START + MINUTE;
    const { isPending, message, state } = await rig.ask({ ms: -59 * MINUTE, after });
    expect(rig.written).toEqual(['create uid-0', 'delete uid-0', 'create uid-1']);
    if (type === 'Complete') expect(isPending).toBe(true);
    else expect([state, message]).toEqual(['failing', expect.stringMatching(/it runs again$/)]);
    rig.ends('Complete');
    expect(await rig.ask({ after })).toMatchObject({ state: 'passing', at: after });
  },
);

test('a Job whose start lies in the future is not replaced while it runs', async () => {
  const rig = new Rig();
  await rig.ask({ ms: 60 * MINUTE });
  expect(await rig.ask({ ms: -59 * MINUTE })).toMatchObject({ isPending: true });
  expect(rig.written).toEqual(['create uid-0']);
});

test('a success is not valid for longer because the clock of the Job controller is fast', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Complete', '', { lastTransitionTime: rfc3339(START + 60 * MINUTE) });
  expect(await rig.ask({ ms: MINUTE })).toMatchObject({ state: 'passing' });
  expect(await rig.ask({ ms: 10 * MINUTE })).toMatchObject({ isPending: true });
});

test('a success is valid although the clock of the Job controller is slow', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Complete', '', { lastTransitionTime: rfc3339(START - 60 * MINUTE) });
  expect(await rig.ask({ ms: MINUTE })).toMatchObject({ state: 'passing' });
  expect(rig.written).toEqual(['create uid-0']);
});

test('after a failure it fails until a later run succeeds', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Failed', 'no pod ran');
  const failing = { state: 'failing', message: expect.stringContaining('failed: no pod ran') };
  expect(await rig.ask()).toMatchObject(failing);
  expect(await rig.ask({ ms: 59 * SECOND })).toMatchObject(failing);
  expect(rig.written).toHaveLength(1);
  expect(await rig.ask({ ms: SECOND })).toMatchObject(failing);
  expect(rig.written).toHaveLength(3);
  expect((await rig.ask({ ms: SECOND })).message).toMatch(/no pod ran; it runs again$/);
  rig.ends('Complete');
  expect(await rig.ask()).toMatchObject({ state: 'passing' });
});

test('a Job that starts in the second in which an upgrade ended counts', async () => {
  const rig = new Rig();
  await rig.ask({ ms: 700, after: START + 600 });
  rig.ends('Complete');
  expect(await rig.ask({ after: START + 600 })).toMatchObject({ state: 'passing' });
  expect(rig.written).toHaveLength(1);
});

test('after a success the failure before it is over', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Failed', 'no pod ran');
  await rig.ask({ ms: MINUTE });
  rig.ends('Complete');
  await rig.ask();
  expect(await rig.ask({ ms: 5 * MINUTE })).toMatchObject({ isPending: true });
  expect(await rig.ask({ ms: SECOND })).toMatchObject({ isPending: true });
});

test('a result stays valid after the time that the Job could have taken', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.now += 4 * MINUTE;
  rig.ends('Complete');
  expect(await rig.ask({ ms: 2 * MINUTE })).toEqual({
    state: 'passing',
    message: expect.stringMatching(/^Job tests\/refit-smoke-\w+ succeeded$/) as string,
    at: START,
  });
});

test.each<[string, string, Partial<Condition>, RegExp]>([
  ['only a message', 'no pod ran', {}, /\w failed: no pod ran$/],
  [
    'a reason and a message',
    'no pod ran',
    { reason: 'BackoffLimitExceeded' },
    /\w failed: BackoffLimitExceeded: no pod ran$/,
  ],
  ['only a reason', '', { reason: 'BackoffLimitExceeded' }, /\w failed: BackoffLimitExceeded$/],
  ['neither a reason nor a message', '', { reason: '' }, /\w failed$/],
])('a failed Job with %s is told', async (_what, message, more, expected) => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Failed', message, more);
  expect(await rig.ask()).toMatchObject({
    state: 'failing',
    message: expect.stringMatching(expected) as string,
  });
});

test('a failure whose time cannot be read counts as just now, and its message is shortened', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Failed', 'x'.repeat(300), { lastTransitionTime: '' });
  const { state, message } = await rig.ask({ ms: 2 * MINUTE });
  expect(state).toBe('failing');
  expect(message).toHaveLength(200);
  expect(rig.written).toHaveLength(1);
});

test('a Job that is being deleted is waited for', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.ends('Complete');
  rig.change({ metadata: { ...rig.job.metadata, deletionTimestamp: rfc3339(rig.now) } });
  expect(await rig.ask()).toMatchObject({
    isPending: true,
    message: expect.stringMatching(/^Job tests\/refit-smoke-\w+ is being deleted$/) as string,
  });
  expect(rig.written).toHaveLength(1);
});

test('each policy and each content of a check has a Job of its own', async () => {
  const rig = new Rig();
  await rig.ask();
  await rig.ask({ policy: 'weekly' });
  await rig.ask({ check: { ...CHECK, timeoutMs: MINUTE } });
  expect(rig.jobs.size).toBe(3);
});

test('the name of a Job is short enough for the API server, however long the name of the check is', async () => {
  const rig = new Rig();
  await rig.ask({ check: { ...CHECK, name: 'n'.repeat(63) } });
  expect(rig.job.metadata.name).toMatch(/^refit-n{40}-[0-9a-f]{10}$/);
});

test('a namespace that may have no Jobs makes the check unknown', async () => {
  const rig = new Rig();
  expect(await rig.ask({ refusal: 'it is reserved' })).toEqual({
    state: 'unknown',
    message: expect.stringMatching(/^Refit creates no Job tests\/.+: it is reserved$/) as string,
  });
  expect(rig.written).toEqual([]);
});

test('a Job of somebody else that runs other pods makes the check unknown', async () => {
  const rig = new Rig();
  await rig.ask();
  rig.change({ spec: { template: { spec: { containers: [{ name: 'c', image: 'other' }] } } } });
  expect(await rig.ask()).toEqual({
    state: 'unknown',
    message: expect.stringContaining(
      'exists, but does not run the pods of this template',
    ) as string,
  });
});

test('an error of the API server is no result', async () => {
  const rig = new Rig();
  rig.client.get = async () => await Promise.reject(new Error('no route'));
  await expect(rig.ask()).rejects.toThrow('no route');
});

test('a Job that nobody ends fails after its time, and is replaced', async () => {
  const rig = new Rig();
  await rig.ask();
  expect(await rig.ask({ ms: 5 * MINUTE })).toMatchObject({ isPending: true });
  expect(await rig.ask({ ms: 30 * SECOND })).toMatchObject({
    state: 'failing',
    message: expect.stringContaining('has not ended within 5 min'),
  });
  await rig.ask({ ms: MINUTE });
  expect(rig.written).toEqual(['create uid-0', 'delete uid-0', 'create uid-1']);
});

test('a missing right is told', async () => {
  const rig = new Rig();
  rig.client.get = async () => await Promise.reject(new StatusError({ kind: 'Status', code: 403 }));
  expect(await rig.ask()).toEqual({
    state: 'unknown',
    message:
      'Refit lacks the right to get, create and delete Jobs in the namespace tests; grant it with the value health.jobs of the chart, or a role of your own',
  });
});

test.each([
  [
    'a missing right',
    403,
    'jobs.batch is forbidden: User "refit" cannot create resource "jobs"',
    /^Refit lacks the right to get, create and delete Jobs in the namespace tests;/,
  ],
  [
    'a webhook that fails',
    500,
    'failed calling webhook "a.example.com"',
    /^Job tests\/\S+ exists, but Refit cannot check/,
  ],
])(
  '%s that keeps a new leader from checking an existing Job is told',
  async (_, code, why, said) => {
    const rig = new Rig();
    await rig.ask();
    rig.client.create = async () =>
      await Promise.reject(new StatusError({ kind: 'Status', code, message: why }));
    expect(await rig.ask()).toEqual({
      state: 'unknown',
      message: expect.stringMatching(said) as string,
    });
  },
);

const QUOTA =
  'jobs.batch "x" is forbidden: exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1';

test('a quota that refuses the Job is not told as a missing right', async () => {
  const rig = new Rig();
  const refused = new StatusError({
    kind: 'Status',
    code: 403,
    reason: 'Forbidden',
    message: QUOTA,
  });
  rig.client.create = async () => await Promise.reject(refused);
  expect(await rig.ask()).toEqual({
    state: 'unknown',
    message: `the API server refuses the Job of the check in the namespace tests: ${QUOTA}`,
  });
});
