/** The columns of the built-in kinds, with the names and cells of Kubernetes 1.36. */
import type { Kind } from '../kinds/kind.ts';
import type { ApiObject } from '../store.ts';
import { age, shortDuration } from './age.ts';
import { type Column, NAME } from './column.ts';
import { podColumns } from './pod-columns.ts';

type Cell = Column['cell'];

const text = (name: string, cell: Cell): Column => {
  return { name, type: 'string', format: '', priority: 0, cell };
};
const integer = (name: string, cell: Cell): Column => ({ ...text(name, cell), type: 'integer' });
/** Makes a column that is shown only with `-o wide`. */
const wide = (name: string, cell: Cell): Column => ({ ...text(name, cell), priority: 1 });

const AGE = text('Age', ({ metadata }, now) => age(metadata.creationTimestamp, now));

interface Condition {
  readonly type: string;
  readonly status: string;
}

interface NodeParts {
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
    readonly nodeInfo?: Readonly<Record<string, string>>;
  };
}

function nodeStatus(object: ApiObject): string {
  const { spec, status } = object as NodeParts;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const words = [ready === undefined ? 'Unknown' : readiness(ready)];
  if (spec?.unschedulable === true) words.push('SchedulingDisabled');
  return words.join(',');
}

const readiness = ({ status }: Condition): string => (status === 'True' ? 'Ready' : 'NotReady');

const ROLE_PREFIX = 'node-role.kubernetes.io/';

function nodeRoles({ metadata }: ApiObject): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return [key.slice(ROLE_PREFIX.length)];
    return key === 'kubernetes.io/role' && value !== '' ? [value] : [];
  });
  return [...new Set(roles.filter((role) => role !== ''))].toSorted().join(',') || '<none>';
}

const nodeInfo =
  (member: string, absent: string): Cell =>
  (object) =>
    (object as NodeParts).status?.nodeInfo?.[member] || absent;

const nodeAddress =
  (wanted: string): Cell =>
  (object) =>
    (object as NodeParts).status?.addresses?.find(({ type }) => type === wanted)?.address ??
    '<none>';

const NODE: readonly Column[] = [
  NAME,
  text('Status', nodeStatus),
  text('Roles', nodeRoles),
  AGE,
  text('Version', nodeInfo('kubeletVersion', '')),
  wide('Internal-IP', nodeAddress('InternalIP')),
  wide('External-IP', nodeAddress('ExternalIP')),
  wide('OS-Image', nodeInfo('osImage', '<unknown>')),
  wide('Kernel-Version', nodeInfo('kernelVersion', '<unknown>')),
  wide('Container-Runtime', nodeInfo('containerRuntimeVersion', '<unknown>')),
];

interface EventParts {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly involvedObject: {
    readonly kind?: string;
    readonly name?: string;
    readonly fieldPath?: string;
  };
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string };
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}

const ofEvent =
  (cell: (event: EventParts, now: number) => unknown): Cell =>
  (object, now) =>
    cell(object as unknown as EventParts, now);

function eventObject({ involvedObject: { kind = '', name = '' } }: EventParts): string {
  const parts = [kind.toLowerCase(), name];
  return parts.filter((part, index) => index === 0 || part !== '').join('/');
}

function eventSource({ source, reportingComponent, reportingInstance }: EventParts): string {
  const component = source?.component || reportingComponent || '';
  const host = source?.host || reportingInstance || '';
  return host === '' ? component : `${component}, ${host}`;
}

const firstSeen = ({ firstTimestamp, eventTime }: EventParts): unknown =>
  firstTimestamp ?? eventTime;

function lastSeen(event: EventParts): unknown {
  return event.series ? event.series.lastObservedTime : (event.lastTimestamp ?? firstSeen(event));
}

const EVENT: readonly Column[] = [
  text(
    'Last Seen',
    ofEvent((event, now) => age(lastSeen(event), now)),
  ),
  text(
    'Type',
    ofEvent(({ type = '' }) => type),
  ),
  text(
    'Reason',
    ofEvent(({ reason = '' }) => reason),
  ),
  text('Object', ofEvent(eventObject)),
  wide(
    'Subobject',
    ofEvent(({ involvedObject: { fieldPath = '' } }) => fieldPath),
  ),
  wide('Source', ofEvent(eventSource)),
  text(
    'Message',
    ofEvent(({ message = '' }) => message.trim()),
  ),
  wide(
    'First Seen',
    ofEvent((event, now) => age(firstSeen(event), now)),
  ),
  wide(
    'Count',
    ofEvent(({ series, count }) => (series ? (series.count ?? 0) : count || 1)),
  ),
  { ...NAME, priority: 1 },
];

interface JobParts {
  readonly spec: {
    readonly completions?: number;
    readonly parallelism?: number;
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
    readonly template: {
      readonly spec?: {
        readonly containers?: readonly { readonly name: string; readonly image?: string }[];
      };
    };
  };
  readonly status?: {
    readonly succeeded?: number;
    readonly startTime?: string;
    readonly completionTime?: string;
    readonly conditions?: readonly Condition[];
  };
}

const ofJob =
  (cell: (job: JobParts, now: number) => unknown): Cell =>
  (object, now) =>
    cell(object as unknown as JobParts, now);

/** The conditions that decide the status of a Job. The first condition that is true decides. */
const JOB_STATES = ['Complete', 'Failed', 'Suspended', 'FailureTarget', 'SuccessCriteriaMet'];

function jobStatus(object: ApiObject): string {
  const { status } = object as unknown as JobParts;
  const met = (wanted: string): boolean =>
    status?.conditions?.some(({ type, status: is }) => type === wanted && is === 'True') ?? false;
  const state = JOB_STATES.find(met);
  const hasEnded = state === 'Complete' || state === 'Failed';
  if (!hasEnded && object.metadata.deletionTimestamp !== undefined) return 'Terminating';
  return state ?? 'Running';
}

function jobCompletions({ spec, status }: JobParts): string {
  const { completions, parallelism = 1 } = spec;
  const succeeded = status?.succeeded ?? 0;
  if (completions !== undefined) return `${succeeded}/${completions}`;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function jobDuration({ status }: JobParts, now: number): string {
  if (status?.startTime === undefined) return '';
  const end = status.completionTime === undefined ? now : Date.parse(status.completionTime);
  return shortDuration(end - Date.parse(status.startTime));
}

const containersOf = ({ spec }: JobParts): readonly { name: string; image?: string }[] =>
  spec.template.spec?.containers ?? [];

const JOB: readonly Column[] = [
  NAME,
  text('Status', jobStatus),
  text('Completions', ofJob(jobCompletions)),
  text('Duration', ofJob(jobDuration)),
  AGE,
  wide(
    'Containers',
    ofJob((job) =>
      containersOf(job)
        .map(({ name }) => name)
        .join(','),
    ),
  ),
  wide(
    'Images',
    ofJob((job) =>
      containersOf(job)
        .map(({ image = '' }) => image)
        .join(','),
    ),
  ),
  wide(
    'Selector',
    ofJob(({ spec }) =>
      Object.entries(spec.selector?.matchLabels ?? {})
        .map(([key, value]) => `${key}=${value}`)
        .join(','),
    ),
  ),
];

const count = (value: unknown): number => Object.keys((value as object | undefined) ?? {}).length;

interface BudgetParts {
  readonly spec?: Readonly<Record<string, number | string | undefined>>;
  readonly status?: { readonly disruptionsAllowed?: number };
}

const ofBudget =
  (member: string): Cell =>
  (object) =>
    String((object as BudgetParts).spec?.[member] ?? 'N/A');

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Node: NODE,
  Pod: podColumns(AGE),
  Event: EVENT,
  Job: JOB,
  Namespace: [
    NAME,
    text('Status', ({ status }) => (status as { phase?: string } | undefined)?.phase ?? ''),
    AGE,
  ],
  Lease: [
    NAME,
    text(
      'Holder',
      ({ spec }) => (spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? '',
    ),
    AGE,
  ],
  PodDisruptionBudget: [
    NAME,
    text('Min Available', ofBudget('minAvailable')),
    text('Max Unavailable', ofBudget('maxUnavailable')),
    integer(
      'Allowed Disruptions',
      (object) => (object as BudgetParts).status?.disruptionsAllowed ?? 0,
    ),
    AGE,
  ],
  Secret: [NAME, text('Type', ({ type }) => type), text('Data', ({ data }) => count(data)), AGE],
  ConfigMap: [NAME, text('Data', ({ data, binaryData }) => count(data) + count(binaryData)), AGE],
  CustomResourceDefinition: [
    NAME,
    {
      ...text('Created At', ({ metadata }) => metadata.creationTimestamp),
      type: 'date',
    },
  ],
};

export function builtinColumns({ kind }: Kind): readonly Column[] {
  return COLUMNS[kind] ?? [NAME, AGE];
}
