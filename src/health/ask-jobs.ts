/**
 * Checks whether a Job created from a template succeeds. The Job itself contains all information about a run, so the
 * next leader continues with the same Job. The Job has the same name in every run, so a check never has two Jobs at the
 * same time.
 */
import { hash } from 'node:crypto';
import type { KubeClient } from '../kube/client.ts';
import { lackOfPods, serviceAccountIn } from '../kube/podless-jobs.ts';
import { type Condition, type Job, jobs, trueCondition } from '../kube/resources.ts';
import { forbiddingOf, ifFound } from '../kube/status-error.ts';
import {
  ForeignJob,
  lookAheadAtTemplate,
  RefusedNamespace,
  type TemplateJobs,
  UncomparedJob,
} from '../kube/template-jobs.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf } from '../util/errors.ts';
import { isRecord, stableStringify } from '../util/json.ts';
import { scalarText } from '../util/scalar-text.ts';
import type { CheckFinding, JobCheck } from './checks.ts';

const CHECK_LABEL = 'upgrade.refit.dev/health-check';
const POLICY_ANNOTATION = 'upgrade.refit.dev/policy';
/**
 * The annotation with the time at which the leader created the Job. This time is from the clock of the leader, like the
 * times at which upgrades end.
 */
export const STARTED_ANNOTATION = 'upgrade.refit.dev/health-check-started';
/**
 * The annotation with the message of the previous run, if that run failed. The check continues to fail with this
 * message until the Job ends.
 */
export const FAILED_ANNOTATION = 'upgrade.refit.dev/health-check-failed';

/** Milliseconds between the end of a failed Job and the start of the next Job. */
const RETRY_MS = 60_000;
/** Milliseconds that the Job controller may take to end a Job that has exceeded its deadline. */
const GRACE_MS = 30_000;
/** Seconds that a finished Job stays for people to read its logs, unless the template says otherwise. */
const KEPT_SECONDS = 3_600;
/**
 * The most characters of the name of a check in the name of its Job. The whole name of the Job may have 63 characters.
 */
const LONGEST_NAME = 40;
/** The most characters of a message in an annotation. */
const LONGEST_MESSAGE = 200;

/** Specifies which result is needed. Times are in milliseconds since the Unix epoch. */
export interface JobNeed {
  /** The name of the policy. */
  readonly policy: string;
  /** A run that started before this time does not count. */
  readonly after: number;
  readonly now: number;
}

export interface JobTools {
  readonly client: KubeClient;
  readonly templates: TemplateJobs;
}

export async function askJobs(
  tools: JobTools,
  check: JobCheck,
  need: JobNeed,
  abort: AbortSignal,
): Promise<CheckFinding> {
  try {
    return await answer(tools, check, need, abort);
  } catch (error) {
    const isUncompared = error instanceof UncomparedJob;
    const forbidding = forbiddingOf(isUncompared ? error.cause : error);
    const isOfExisting = error instanceof ForeignJob || (isUncompared && forbidding !== 'right');
    if (isOfExisting || error instanceof RefusedNamespace)
      return { state: 'unknown', message: error.message };
    if (forbidding === undefined) throw error;
    if (forbidding !== 'right') {
      const why = messageOf(error);
      return {
        state: 'unknown',
        message: `the API server refuses the Job of the check in the namespace ${check.namespace}: ${why}`,
      };
    }
    const message =
      `Refit lacks the right to get, create and delete Jobs in the namespace ${check.namespace}; ` +
      'grant it with the value health.jobs of the chart, or a role of your own';
    return { state: 'unknown', message };
  }
}

/** Resolves with the reason why no Job of the check can be created now, as `lookAheadAtTemplate` says it. */
export async function lookAheadAtCheck(
  templates: Pick<TemplateJobs, 'rehearse'>,
  check: JobCheck,
  need: Pick<JobNeed, 'policy' | 'now'>,
  abort: AbortSignal,
): Promise<string | undefined> {
  const name = `refit-${check.name.slice(0, LONGEST_NAME)}-preview`;
  const job = jobOf(name, check, { ...need, after: 0 }, undefined);
  return await lookAheadAtTemplate(templates, job, abort);
}

async function answer(
  { client, templates }: JobTools,
  check: JobCheck,
  need: JobNeed,
  abort: AbortSignal,
): Promise<CheckFinding> {
  const { namespace } = check;
  const name = nameOf(check, need.policy);
  const options = { namespace, abort };
  const job = await templates.find(jobOf(name, check, need, undefined), abort);
  const run = job && runOf(job, check, need.now);
  if (job && run) {
    if (job.metadata.deletionTimestamp !== undefined)
      return running(`${run.name} is being deleted`, run.earlier);
    if (run.end === undefined) {
      const ranMs = Math.max(0, need.now - run.startedAt);
      const template = check.spec['template'];
      const account = serviceAccountIn(isRecord(template) ? template['spec'] : undefined);
      const lack = lackOfPods({ ...job, metadata: { ...job.metadata, namespace } }, account);
      const what = lack ?? `has run for ${formatDuration(ranMs)}`;
      return running(`${run.name} ${what}`, run.earlier);
    }
    if (counts(run, run.end, check, need))
      return { state: run.end.state, message: run.end.message, at: run.startedAt };
    const { uid } = job.metadata;
    await ifFound(
      client.delete(jobs, name, {
        ...options,
        propagationPolicy: 'Background',
        ...(uid === undefined ? {} : { uid }),
      }),
    );
  }
  const failed = run?.end?.state === 'failing' ? run.end.message : undefined;
  // If another process has created the Job first, or the old Job still exists, the next round detects this.
  await templates.create(jobOf(name, check, need, failed), abort);
  return running(`Job ${namespace}/${name} starts`, failed);
}

interface Run {
  readonly name: string;
  readonly startedAt: number;
  /** True if the recorded start is later than now, because the clock of a leader was wrong. Nobody knows then when the run started. */
  readonly isFromFuture: boolean;
  /** The message of the previous run, if that run failed. */
  readonly earlier: string | undefined;
  /** Undefined while the Job runs. */
  readonly end: End | undefined;
}

interface End {
  readonly state: 'passing' | 'failing';
  readonly message: string;
  readonly at: number;
}

/** Returns true if the result of the run is still valid for the present state of the cluster. */
function counts(run: Run, end: End, check: JobCheck, { after, now }: JobNeed): boolean {
  // Such a run may be older than the upgrade whose result it would prove.
  if (run.isFromFuture) return false;
  if (end.state === 'failing') return now - end.at < RETRY_MS;
  return run.startedAt >= after && now - end.at < check.everyMs;
}

function runOf(job: Job, { namespace, timeoutMs }: JobCheck, now: number): Run {
  const { name, annotations = {}, creationTimestamp = '' } = job.metadata;
  const label = `Job ${namespace}/${name}`;
  const recorded = annotations[STARTED_ANNOTATION] ?? creationTimestamp;
  const startedAt = timeOf(recorded, now);
  const isFromFuture = Date.parse(recorded) > now;
  const end = endOf(job.status?.conditions ?? [], label, now);
  const run = { name: label, startedAt, isFromFuture, earlier: annotations[FAILED_ANNOTATION] };
  const lateAt = startedAt + timeoutMs + GRACE_MS;
  // The Job controller writes the time of the end with its own clock. By the clock of the leader, the run ended between
  // these two times.
  if (end !== undefined)
    return { ...run, end: { ...end, at: Math.min(Math.max(end.at, startedAt), lateAt) } };
  if (now < lateAt) return { ...run, end };
  const message = `${label} has not ended within ${formatDuration(timeoutMs)}`;
  return { ...run, end: { state: 'failing', message, at: lateAt } };
}

function endOf(conditions: readonly Condition[], label: string, now: number): End | undefined {
  const found = trueCondition(conditions, 'Complete') ?? trueCondition(conditions, 'Failed');
  if (found === undefined) return undefined;
  const at = timeOf(found.lastTransitionTime, now);
  if (found.type === 'Complete') return { state: 'passing', message: `${label} succeeded`, at };
  const why = [found.reason, found.message].filter((part) => part !== undefined && part !== '');
  const message = [`${label} failed`, ...why].join(': ');
  return { state: 'failing', message: message.slice(0, LONGEST_MESSAGE), at };
}

/**
 * Returns the result while a Job runs. This result makes nodes wait. After a failed run, the check keeps failing until
 * a run succeeds.
 */
function running(what: string, failed: string | undefined): CheckFinding {
  if (failed === undefined) return { state: 'unknown', message: what, isPending: true };
  return { state: 'failing', message: `${failed}; it runs again` };
}

/** Returns the time in milliseconds; `now` for a time that cannot be read or is in the future. */
function timeOf(text: string | undefined, now: number): number {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? now : Math.min(time, now);
}

function nameOf(check: JobCheck, policy: string): string {
  const digest = hash('sha256', stableStringify([policy, check])).slice(0, 10);
  return `refit-${check.name.slice(0, LONGEST_NAME)}-${digest}`;
}

function jobOf(
  name: string,
  check: JobCheck,
  { policy, now }: JobNeed,
  failed: string | undefined,
): Job {
  const { template, ttlSecondsAfterFinished, activeDeadlineSeconds, backoffLimit } = check.spec;
  const seconds = Math.ceil(check.timeoutMs / 1000);
  const own = Number(scalarText(activeDeadlineSeconds ?? seconds));
  const { spec: podSpec, ...pod } = isRecord(template) ? template : {};
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      namespace: check.namespace,
      labels: { 'app.kubernetes.io/managed-by': 'refit', [CHECK_LABEL]: check.name },
      annotations: {
        [POLICY_ANNOTATION]: policy,
        // The time has milliseconds. With whole seconds, a Job would seem to be older than an upgrade that ended in the
        // same second.
        [STARTED_ANNOTATION]: new Date(now).toISOString(),
        ...(failed === undefined ? {} : { [FAILED_ANNOTATION]: failed }),
      },
    },
    spec: {
      ...check.spec,
      backoffLimit: backoffLimit ?? 0,
      ttlSecondsAfterFinished: ttlSecondsAfterFinished ?? KEPT_SECONDS,
      activeDeadlineSeconds: Math.min(own, seconds),
      template: {
        ...pod,
        // A Job that tests the cluster rarely needs the API server. Therefore its pod gets no token unless the template
        // requests a token.
        spec: {
          restartPolicy: 'Never',
          automountServiceAccountToken: false,
          ...(isRecord(podSpec) ? podSpec : {}),
        },
      },
    },
  };
}
