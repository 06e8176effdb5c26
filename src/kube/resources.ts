/** Resources and their URL paths, the built-in resources that Refit uses, and the keys and versions of objects. */
import type { Event, Job, KubeObject, Lease, Node, Pod, PodDisruptionBudget, Secret } from './types.ts';

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

export const nodes: Resource<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
export const pods: Resource<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
export const events: Resource<Event> = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true };
export const secrets: Resource<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
};
export const podDisruptionBudgets: Resource<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
};
export const daemonSets: Resource = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
};
export const jobs: Resource<Job> = { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true };
export const namespaces: Resource = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};
export const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export interface Address {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** The URL path of a collection, an object or a subresource. */
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
