/** Explains why the pod of a Job does not run, in the words of the scheduler and the kubelet. */
import type { World } from '../../../engine/contract/world.ts';
import {
  type ContainerStatus,
  type Job,
  type Pod,
  pods,
  type Resource,
} from '../../../kube/resources.ts';
import { defined } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';

/** The reasons that every pod has for a short time when it starts. A pod with such a reason is not stalled. */
const ROUTINE = new Set(['PodInitializing', 'ContainerCreating']);

/** The milliseconds after the start of a Job within which most Jobs have a ready pod. */
const STARTS_WITHIN_MS = 10_000;

/**
 * Returns true if a pod of the Job failed, or if no pod was ready in time after the start of the Job. If the clock of
 * this process differs from the clock of the cluster, the result may be true for every Job without a ready pod. Returns
 * false for a Job that has not started, because it has no pod.
 */
export function waitsLong(
  { status: { ready = 0, failed = 0, startTime = '' } = {} }: Job,
  now: number,
): boolean {
  return failed > 0 || (ready === 0 && Math.abs(now - Date.parse(startTime)) > STARTS_WITHIN_MS);
}

/**
 * Returns why the last pod of a Job does not run. Returns undefined if the pod runs, because the watch does not include
 * running pods. Also returns undefined if pods cannot be read.
 */
export function stallOf(
  { metadata, status: { ready = 0, active = 0 } = {} }: Job,
  world: World,
  resource: Resource<Pod> = pods,
): string | undefined {
  // If a Job has a ready pod, the pods are not searched. This saves time if many nodes are in progress.
  if (ready > 0) return undefined;
  const last = lastByOwner(world.list(resource)).get(metadata.uid);
  return last?.status?.phase === 'Failed' && active > 0 ? undefined : last && stallIn(last);
}

const lastByOwner = onceForEach((all: readonly Pod[]) => {
  const made = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
  const inOrder = all.toSorted((a, b) => made(a).localeCompare(made(b)));
  return new Map(inOrder.map((pod) => [pod.metadata.ownerReferences?.[0]?.uid, pod]));
});

export function stallIn({ status = {} }: Pod): string | undefined {
  const { phase, reason, message, conditions = [] } = status;
  const why = [reason, message].filter(Boolean).join(': ');
  if (phase === 'Failed') return `its last pod failed${why === '' ? '' : ` (${why})`}`;
  const unscheduled = conditions.find(
    (each) => each.type === 'PodScheduled' && each.status === 'False',
  );
  if (unscheduled)
    return `its pod cannot be scheduled: ${unscheduled.message?.replace(/\.$/, '') ?? 'no reason was given'}`;
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const [stalled] = containers.flatMap(({ name, state }) => {
    const { reason: why, message: words } = state?.waiting ?? {};
    return why === undefined || ROUTINE.has(why)
      ? []
      : `its container ${name} waits (${[why, words].filter(Boolean).join(': ')})`;
  });
  return stalled;
}

/** Returns the part of a pod that the cache keeps. Refit never writes pods. */
export function trimPod({ metadata, status = {} }: Pod): Pod {
  const { labels: _l, annotations: _a, managedFields: _m, ...kept } = metadata;
  const {
    phase,
    reason,
    message,
    conditions = [],
    initContainerStatuses = [],
    containerStatuses = [],
  } = status;
  return {
    metadata: kept,
    status: {
      ...defined({ phase, reason, message }),
      conditions: conditions.filter(({ type }) => type === 'PodScheduled'),
      initContainerStatuses: initContainerStatuses.map(trimStatus),
      containerStatuses: containerStatuses.map(trimStatus),
    },
  };
}

function trimStatus({ name, state: { waiting } = {} }: ContainerStatus): ContainerStatus {
  return { name, state: waiting ? { waiting } : {} };
}
