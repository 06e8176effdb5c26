/** The defaults of pods that matter for scheduling, drain and eviction. Service accounts are never mounted. */
import { isDeepStrictEqual } from 'node:util';
import { type Cause, cause } from '../failure.ts';
import type { ApiObject } from '../store.ts';
import { builtinKind, textFields } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';

const DEFAULTS = {
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  dnsPolicy: 'ClusterFirst',
  serviceAccountName: 'default',
  serviceAccount: 'default',
  securityContext: {},
  schedulerName: 'default-scheduler',
  priority: 0,
  enableServiceLinks: true,
  preemptionPolicy: 'PreemptLowerPriority',
};

/** The tolerations that the admission plug-in DefaultTolerationSeconds adds. */
const TOLERATED = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

interface Container {
  image?: string;
  resources: { limits?: Record<string, string>; requests?: Record<string, string> };
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
  imagePullPolicy?: string;
}

interface PodSpec {
  activeDeadlineSeconds?: number;
  schedulingGates?: unknown[];
  containers?: Container[];
  initContainers?: Container[];
  tolerations?: { key?: string }[];
}

const containersOf = ({ containers = [], initContainers = [] }: PodSpec): Container[] => [
  ...containers,
  ...initContainers,
];

/** The containers are checked. Only their probes, ports, mounts and similar members are stored as given. */
export const podKind = builtinKind(
  { group: '', version: 'v1', plural: 'pods', namespaced: true },
  shape.pod,
  {
    shortNames: ['po'],
    categories: ['all'],
    unconditionalUpdate: true,
    generation: true,
    fields: textFields(
      ...['nodeName', 'restartPolicy', 'schedulerName', 'serviceAccountName', 'hostNetwork'].map(
        (field) => `spec.${field}`,
      ),
      ...['phase', 'podIP', 'podIPs', 'nominatedNodeName'].map((field) => `status.${field}`),
    ),
    status: (pod) => ({
      phase: 'Pending',
      qosClass: qualityOfService(containersOf(pod['spec'] as PodSpec)),
    }),
    default(pod, old) {
      if (old) return;
      const spec = pod['spec'] as PodSpec;
      const { tolerations = [] } = spec;
      const missing = TOLERATED.filter(
        ({ key }) => !tolerations.some((own) => own.key === undefined || own.key === key),
      );
      pod['spec'] = { ...DEFAULTS, ...spec, tolerations: [...tolerations, ...missing] };
      containersOf(spec).forEach(defaultContainer);
    },
    validate: (pod, old) =>
      old && !isDeepStrictEqual(fixedPart(pod), fixedPart(old)) ? [CHANGED] : [],
  },
);

const CHANGED: Cause = cause.forbidden(
  'spec',
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
    '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
    '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
);

/** The immutable part of a pod's spec; changes of the rest are not checked. */
function fixedPart(pod: ApiObject): Record<string, unknown> {
  const {
    containers = [],
    initContainers = [],
    tolerations: _tolerations,
    ...rest
  } = pod['spec'] as PodSpec;
  const { activeDeadlineSeconds: _deadline, schedulingGates: _gates, ...fixed } = rest;
  const imageless = ({ image: _image, ...container }: Container): object => container;
  return {
    ...fixed,
    containers: containers.map(imageless),
    initContainers: initContainers.map(imageless),
  };
}

function defaultContainer(container: Container): void {
  const { image = '', resources } = container;
  const [, tag = 'latest'] = /:([^/:]+)$/.exec(image) ?? [];
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  container.imagePullPolicy ??= tag === 'latest' ? 'Always' : 'IfNotPresent';
  if (resources.limits) resources.requests = { ...resources.limits, ...resources.requests };
}

/** The QoS class, from requests and limits. */
function qualityOfService(containers: readonly Container[]): string {
  if (containers.every(({ resources }) => !resources.limits && !resources.requests))
    return 'BestEffort';
  const guaranteed = containers.every(({ resources: { limits = {}, requests = {} } }) =>
    ['cpu', 'memory'].every(
      (name) => limits[name] !== undefined && limits[name] === (requests[name] ?? limits[name]),
    ),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

/** Reports whether disruption budgets count the pod as healthy. */
export function isReady(pod: ApiObject): boolean {
  const { conditions = [] } = pod['status'] as { conditions?: { type: string; status: string }[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
