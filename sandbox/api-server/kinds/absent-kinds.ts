/**
 * The kinds of which no objects can exist here, because nothing creates them. A real server without such objects would
 * give the same answer to a get or a list. Clients cannot write these kinds.
 */
export interface AbsentKind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  /** True if `kubectl get all` shows the kind. */
  readonly inAll: boolean;
}

const absent = (
  apiVersion: string,
  kind: string,
  shortNames: readonly string[] = [],
  more: Partial<AbsentKind> = {},
): AbsentKind => {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const plural = `${kind.toLowerCase()}s`;
  return { group, version, plural, kind, namespaced: true, shortNames, inAll: false, ...more };
};

const inAll = { inAll: true };
const forCluster = { namespaced: false };

export const ABSENT_KINDS: readonly AbsentKind[] = [
  absent('v1', 'Service', ['svc'], inAll),
  absent('v1', 'PersistentVolumeClaim', ['pvc']),
  absent('v1', 'PersistentVolume', ['pv'], forCluster),
  absent('apps/v1', 'DaemonSet', ['ds'], inAll),
  absent('apps/v1', 'Deployment', ['deploy'], inAll),
  absent('apps/v1', 'ReplicaSet', ['rs'], inAll),
  absent('apps/v1', 'StatefulSet', ['sts'], inAll),
  absent('batch/v1', 'CronJob', ['cj'], inAll),
  absent('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', [], forCluster),
  absent('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', [], forCluster),
  absent('discovery.k8s.io/v1', 'EndpointSlice'),
];

/** Describes the kind as discovery does. */
export const describeAbsent = ({
  plural,
  kind,
  namespaced,
  shortNames,
  inAll: isInAll,
}: AbsentKind): Record<string, unknown> => ({
  name: plural,
  singularName: kind.toLowerCase(),
  namespaced,
  kind,
  verbs: ['get', 'list'],
  ...(shortNames.length > 0 ? { shortNames } : {}),
  ...(isInAll ? { categories: ['all'] } : {}),
});
