/** Owns the defaults of pods: those that scheduling, draining and evicting can meet; no service account is ever mounted. */
import { builtinKind, textFields } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import type { ApiObject } from './store.ts';

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

/** What the admission plug-in DefaultTolerationSeconds adds. */
const TOLERATED = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

interface PodSpec {
  containers?: Record<string, unknown>[];
  initContainers?: Record<string, unknown>[];
  tolerations?: { key?: string; effect?: string }[];
}

export const podKind = builtinKind({ group: '', version: 'v1', plural: 'pods', namespaced: true }, shape.pod, {
  shortNames: ['po'],
  unconditionalUpdate: true,
  generation: true,
  fields: textFields(
    ...['nodeName', 'restartPolicy', 'schedulerName', 'serviceAccountName', 'hostNetwork'].map(
      (field) => `spec.${field}`,
    ),
    ...['phase', 'podIP', 'podIPs', 'nominatedNodeName'].map((field) => `status.${field}`),
  ),
  status: () => ({ phase: 'Pending', qosClass: 'BestEffort' }),
  default(pod, old) {
    if (old) return;
    const spec = pod['spec'] as PodSpec;
    const { tolerations = [] } = spec;
    const missing = TOLERATED.filter(({ key }) => !tolerations.some((own) => own.key === undefined || own.key === key));
    pod['spec'] = { ...DEFAULTS, ...spec, tolerations: [...tolerations, ...missing] };
    for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) defaultContainer(container);
  },
});

function defaultContainer(container: Record<string, unknown>): void {
  const { image = '' } = container as { image?: string };
  const [, tag = 'latest'] = /:([^/:]+)$/.exec(image) ?? [];
  container['terminationMessagePath'] ??= '/dev/termination-log';
  container['terminationMessagePolicy'] ??= 'File';
  container['imagePullPolicy'] ??= tag === 'latest' ? 'Always' : 'IfNotPresent';
}

export function isReady(pod: ApiObject): boolean {
  const { conditions = [] } = pod['status'] as { conditions?: { type: string; status: string }[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
