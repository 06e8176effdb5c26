/** Resources and their URL paths, the built-in resources that Refit uses, and the keys and versions of objects. */
import type {
  ConfigMap,
  EndpointSlice,
  Event,
  Job,
  KubeObject,
  Lease,
  Node,
  NodeCondition,
  Pod,
  PodDisruptionBudget,
  Secret,
} from './types.ts';

export interface Resource<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never set: carries the object's type. */
  readonly object?: T;
}

export function namespaced<T extends KubeObject>(apiVersion: string, kind: string, plural: string): Resource<T> {
  return { ...clusterScoped(apiVersion, kind, plural), namespaced: true };
}

export function clusterScoped<T extends KubeObject>(apiVersion: string, kind: string, plural: string): Resource<T> {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  return { group, version, kind, plural, namespaced: false };
}

export const nodes = clusterScoped<Node>('v1', 'Node', 'nodes');
export const pods = namespaced<Pod>('v1', 'Pod', 'pods');
export const events = namespaced<Event>('v1', 'Event', 'events');
export const configMaps = namespaced<ConfigMap>('v1', 'ConfigMap', 'configmaps');
export const secrets = namespaced<Secret>('v1', 'Secret', 'secrets');
export const podDisruptionBudgets = namespaced<PodDisruptionBudget>(
  'policy/v1',
  'PodDisruptionBudget',
  'poddisruptionbudgets',
);
export const daemonSets = namespaced('apps/v1', 'DaemonSet', 'daemonsets');
export const jobs = namespaced<Job>('batch/v1', 'Job', 'jobs');
export const namespaces = clusterScoped('v1', 'Namespace', 'namespaces');
export const endpointSlices = namespaced<EndpointSlice>('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices');
export const leases = namespaced<Lease>('coordination.k8s.io/v1', 'Lease', 'leases');

export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export interface Address {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

export function pathOf(resource: Resource, { namespace, name, subresource }: Address = {}): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const tail = [name, subresource].filter((part) => part !== undefined).map((part) => `/${encodeURIComponent(part)}`);
  return `${root}${scope}/${resource.plural}${tail.join('')}`;
}

/** The key of an object in stores and queues: `namespace/name`, or `name` when cluster-scoped. */
export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function splitKey(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Negative when `a` is older than `b`. API servers guarantee decimal numbers of any length; throws a SyntaxError otherwise. */
export function compareResourceVersions(a: string, b: string): number {
  const [left, right] = [BigInt(a), BigInt(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** With these annotations beside its other ones. */
export function annotated<T extends KubeObject>(object: T, more: Record<string, string>): T {
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...more } } };
}

export function withoutAnnotation<T extends KubeObject>(object: T, name: string): T {
  const { [name]: _removed, ...annotations } = object.metadata.annotations ?? {};
  return { ...object, metadata: { ...object.metadata, annotations } };
}

export function kubeletVersionOf(node: Node | undefined): string | undefined {
  return node?.status?.nodeInfo?.kubeletVersion;
}

/** The Ready condition of a Node or Pod; undefined for objects without one. */
export function readyCondition(object: (KubeObject & Pick<Node, 'status'>) | undefined): NodeCondition | undefined {
  return object?.status?.conditions?.find(({ type }) => type === 'Ready');
}
