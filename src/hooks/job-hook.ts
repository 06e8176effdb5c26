/** Runs a hook as a Job. Every leader creates the Job under the same name, and reads its state. */
import { HOOK_LABEL, HOOK_NODE_ANNOTATION } from '../drain/own-pods.ts';
import { lackOfPods, serviceAccountIn } from '../kube/podless-jobs.ts';
import { type Job, trueCondition } from '../kube/resources.ts';
import { isInvalid, isInvalidObject } from '../kube/status-error.ts';
import {
  ForeignJob,
  lookAheadAtTemplate,
  type TemplateJobs,
  UncomparedJob,
} from '../kube/template-jobs.ts';
import { messageOf } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import type { Hook, HookFinding, HookRun, JobAction } from './rules.ts';

/** Seconds after its end for which a Job is kept, so that people can read its logs. */
const KEPT_SECONDS = 86_400;

/**
 * Creates the Job of the run if the Job does not exist, and returns its state. A Job that somebody deleted is created
 * again.
 */
export async function lookAtJob(
  templates: TemplateJobs,
  run: HookRun,
  action: JobAction,
  abort: AbortSignal,
): Promise<HookFinding> {
  const { namespace } = action;
  const name = `Job ${namespace}/${run.id}`;
  const wanted = jobOfRun(run, action);
  try {
    const found = await templates.find(wanted, abort);
    if (found) return findingOf(found, action);
    // Another leader may have created the same Job in the meantime. The next call then finds this Job.
    await templates.create(wanted, abort);
  } catch (error) {
    // Somebody may delete the foreign Job, raise the quota, or repair the webhook before the deadline of the hook.
    if (error instanceof ForeignJob || error instanceof UncomparedJob) throw error;
    if (!isInvalid(error) && !isInvalidObject(error))
      throw new Error(`${name} cannot be created: ${messageOf(error)}`, { cause: error });
    return { state: 'failed', message: `the API server refuses ${name}: ${messageOf(error)}` };
  }
  return { state: 'running', message: `${name} is created` };
}

/** Resolves with the reason why no Job of the hook can be created now, as `lookAheadAtTemplate` says it. */
export async function lookAheadAtJob(
  templates: Pick<TemplateJobs, 'rehearse'>,
  hook: Hook,
  abort: AbortSignal,
): Promise<string | undefined> {
  const { action, name } = hook;
  if (action.kind !== 'job') return undefined;
  const job = jobOfRun({ id: `refit-${name}-preview`, hook, variables: {} }, action);
  return await lookAheadAtTemplate(templates, job, abort);
}

function findingOf(job: Job, { namespace, template }: JobAction): HookFinding {
  const { metadata, status = {} } = job;
  const name = `Job ${namespace}/${metadata.name}`;
  const { conditions = [] } = status;
  if (trueCondition(conditions, 'Complete'))
    return { state: 'succeeded', message: `${name} is complete` };
  const failed = trueCondition(conditions, 'Failed');
  if (!failed) {
    const lack = lackOfPods(
      { ...job, metadata: { ...metadata, namespace } },
      serviceAccountIn(template.spec),
    );
    return { state: 'running', message: `${name} ${lack ?? 'runs'}` };
  }
  const why = [failed.reason, failed.message].filter((text) => text !== undefined && text !== '');
  return {
    state: 'failed',
    message: [`${name} failed`, why.join(', ')].join(why.length > 0 ? ': ' : ''),
  };
}

/**
 * Returns the Job of a run. The Job has the deadline of the hook, so that the deadline applies even if no leader runs.
 */
export function jobOfRun({ id, hook, variables, node }: HookRun, action: JobAction): Job {
  const { template, namespace, pinToNode, retries } = action;
  const labels = { ...template.metadata?.labels, [HOOK_LABEL]: hook.name };
  const spec = withVariables({ restartPolicy: 'Never', ...template.spec }, variables);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: id,
      namespace,
      labels: { [HOOK_LABEL]: hook.name },
      ...(node === undefined ? {} : { annotations: { [HOOK_NODE_ANNOTATION]: node } }),
    },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: retries,
      activeDeadlineSeconds: Math.max(1, Math.ceil(hook.timeoutMs / 1000)),
      ttlSecondsAfterFinished: KEPT_SECONDS,
      template: {
        metadata: {
          ...template.metadata,
          labels,
          ...(node === undefined
            ? {}
            : { annotations: { ...template.metadata?.annotations, [HOOK_NODE_ANNOTATION]: node } }),
        },
        spec: pinToNode && node !== undefined ? pinned(spec, node) : spec,
      },
    },
  };
}

type PodSpec = Readonly<Record<string, unknown>>;

/** Returns the value if it is a list; an empty list otherwise. */
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** Returns the spec with the variables in each container. A variable replaces an existing variable of the same name. */
function withVariables(spec: PodSpec, variables: HookRun['variables']): PodSpec {
  const names = new Set<unknown>(Object.keys(variables));
  const added = Object.entries(variables).map(([name, value]) => ({ name, value }));
  const filled = (container: unknown): unknown => {
    if (!isRecord(container)) return container;
    const { env } = container;
    const own = listOf(env);
    const others = own.filter((each) => !isRecord(each) || !names.has(each['name']));
    return { ...container, env: [...added, ...others] };
  };
  const lists = ['initContainers', 'containers'].flatMap((field) => {
    const list = ownMember(spec, field);
    return Array.isArray(list) ? [[field, list.map(filled)] as const] : [];
  });
  return { ...spec, ...Object.fromEntries(lists) };
}

/**
 * Returns the spec for pods that may run only on this Node, even while the Node is unschedulable. As for a DaemonSet,
 * the scheduler binds the pod, so that it still checks whether the pod fits.
 */
function pinned(spec: PodSpec, node: string): PodSpec {
  const affinity = recordIn(spec, 'affinity');
  const nodeAffinity = recordIn(affinity, 'nodeAffinity');
  const required = recordIn(nodeAffinity, REQUIRED);
  const terms = required['nodeSelectorTerms'];
  const isNode = { key: 'metadata.name', operator: 'In', values: [node] };
  const all = Array.isArray(terms) && terms.length > 0 ? terms : [{}];
  const nodeSelectorTerms = all.map((term: unknown) => {
    const own = isRecord(term) ? term : {};
    const fields = listOf(own['matchFields']);
    return { ...own, matchFields: [...fields, isNode] };
  });
  const tolerations = listOf(spec['tolerations']);
  return {
    ...spec,
    affinity: {
      ...affinity,
      nodeAffinity: { ...nodeAffinity, [REQUIRED]: { ...required, nodeSelectorTerms } },
    },
    tolerations: [
      ...tolerations,
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
    ],
  };
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function recordIn(of: PodSpec, field: string): PodSpec {
  const value = ownMember(of, field);
  return isRecord(value) ? value : {};
}
