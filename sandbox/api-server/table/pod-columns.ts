/** The columns of pods: what `kubectl get pods` derives from the statuses of their containers. */
import type { ApiObject } from '../store.ts';
import { age } from './age.ts';
import { type Column, NAME } from './column.ts';

interface Terminated {
  readonly reason?: string;
  readonly signal?: number;
  readonly exitCode?: number;
  readonly finishedAt?: string;
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string };
    readonly running?: object;
    readonly terminated?: Terminated;
  };
  readonly lastState?: { readonly terminated?: Terminated };
}

interface Container {
  readonly name: string;
  readonly restartPolicy?: string;
}

interface PodParts {
  readonly metadata: ApiObject['metadata'];
  readonly spec: {
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly nodeName?: string;
    readonly readinessGates?: readonly { readonly conditionType: string }[];
  };
  readonly status: {
    readonly phase?: string;
    readonly reason?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
    }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** Returns the reason why a container does not run; undefined if it runs. */
function stopReason({ state }: ContainerStatus): string | undefined {
  const { waiting, terminated } = state ?? {};
  if (waiting?.reason) return waiting.reason;
  if (!terminated) return undefined;
  if (terminated.reason) return terminated.reason;
  if (terminated.signal) return `Signal:${terminated.signal}`;
  return `ExitCode:${terminated.exitCode ?? 0}`;
}

/** Reports whether an init container is done: it ended with success, or it is a sidecar that has started. */
function isInitialized(status: ContainerStatus, { spec }: PodParts): boolean {
  if (status.state?.terminated?.exitCode === 0) return true;
  return isSidecar(status, spec.initContainers) && status.started === true;
}

function isSidecar({ name }: ContainerStatus, containers: readonly Container[] = []): boolean {
  return containers.some((each) => each.name === name && each.restartPolicy === 'Always');
}

function initReason(pod: PodParts): string | undefined {
  const statuses = pod.status.initContainerStatuses ?? [];
  const index = statuses.findIndex((status) => !isInitialized(status, pod));
  const blocking = statuses[index];
  if (!blocking) return undefined;
  const stopped = stopReason(blocking);
  if (stopped !== undefined && stopped !== 'PodInitializing') return `Init:${stopped}`;
  return `Init:${index}/${pod.spec.initContainers?.length ?? 0}`;
}

function podStatus(pod: PodParts): string {
  const { status, metadata } = pod;
  if (metadata.deletionTimestamp !== undefined) {
    if (status.reason === 'NodeLost') return 'Unknown';
    const ended = status.phase === 'Succeeded' || status.phase === 'Failed';
    if (!ended) return 'Terminating';
  }
  const gated = status.conditions?.some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated',
  );
  const initial = gated ? 'SchedulingGated' : status.reason || status.phase || '';
  return initReason(pod) ?? containerReason(pod, initial);
}

/**
 * Returns the reason of the first container that has stopped. If that is `Completed` while another container runs,
 * returns `Running` or `NotReady`.
 */
function containerReason({ status }: PodParts, otherwise: string): string {
  const statuses = status.containerStatuses ?? [];
  const reason = statuses.map(stopReason).find((each) => each !== undefined) ?? otherwise;
  const runs = statuses.some(({ ready, state }) => ready === true && state?.running);
  if (reason !== 'Completed' || !runs) return reason;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  return ready?.status === 'True' ? 'Running' : 'NotReady';
}

function podReady({ spec, status }: PodParts): string {
  const statuses = status.containerStatuses ?? [];
  const sidecars = (status.initContainerStatuses ?? []).filter((each) =>
    isSidecar(each, spec.initContainers),
  );
  const ready = statuses.filter((each) => each.ready === true && each.state?.running);
  const started = sidecars.filter((each) => each.ready === true && each.started === true);
  const all =
    (spec.containers?.length ?? 0) +
    (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').length;
  return `${ready.length + started.length}/${all}`;
}

/** Returns the number of restarts, with the time since the last restart if there was one. */
function podRestarts(pod: PodParts, now: number): string {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status;
  const sidecars = initContainerStatuses.filter((each) => isSidecar(each, pod.spec.initContainers));
  const counted =
    initReason(pod) === undefined ? [...containerStatuses, ...sidecars] : initContainerStatuses;
  const restarts = counted.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0);
  const ends = counted.flatMap(({ lastState }) => lastState?.terminated?.finishedAt ?? []);
  const last = ends.toSorted().at(-1);
  return restarts === 0 || last === undefined
    ? String(restarts)
    : `${restarts} (${age(last, now)} ago)`;
}

function readinessGates({ spec, status }: PodParts): string {
  const gates = spec.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const met = gates.filter(({ conditionType }) =>
    status.conditions?.some(({ type, status: is }) => type === conditionType && is === 'True'),
  );
  return `${met.length}/${gates.length}`;
}

const column = (
  name: string,
  priority: number,
  cell: (pod: PodParts, now: number) => unknown,
): Column => {
  const asPod: Column['cell'] = (object, now) => cell(object as unknown as PodParts, now);
  return { name, type: 'string', format: '', priority, cell: asPod };
};

/** Returns the conditions for the row of a pod. They allow kubectl to hide pods that have ended. */
export function podRowConditions({ status }: ApiObject): object {
  const { phase } = (status ?? {}) as PodParts['status'];
  const message = phase === undefined ? undefined : ENDS[phase];
  if (message === undefined) return {};
  return { conditions: [{ type: 'Completed', status: 'True', reason: phase, message }] };
}

const ENDS: Readonly<Record<string, string>> = {
  Succeeded: 'The pod has completed successfully.',
  Failed: 'The pod failed.',
};

export function podColumns(ageColumn: Column): readonly Column[] {
  return [
    NAME,
    column('Ready', 0, podReady),
    column('Status', 0, podStatus),
    column('Restarts', 0, podRestarts),
    ageColumn,
    column('IP', 1, ({ status }) => status.podIPs?.[0]?.ip ?? (status.podIP || '<none>')),
    column('Node', 1, ({ spec }) => spec.nodeName || '<none>'),
    column('Nominated Node', 1, ({ status }) => status.nominatedNodeName || '<none>'),
    column('Readiness Gates', 1, readinessGates),
  ];
}
