/** Resources, their URL paths, keys and versions of objects, and the shapes that Refit reads: other fields survive. */
import { ownMember } from '../util/own-member.ts';

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

/** Only an irregular plural must be named. */
export function namespaced<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural?: string,
): Resource<T> {
  return { ...clusterScoped(apiVersion, kind, plural), namespaced: true };
}

export function clusterScoped<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural?: string,
): Resource<T> {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  return {
    group,
    version,
    kind,
    plural: plural ?? `${kind.toLowerCase().replace(/y$/, 'ie')}s`,
    namespaced: false,
  };
}

export const nodes = clusterScoped<Node>('v1', 'Node');
export const pods = namespaced<Pod>('v1', 'Pod');
export const events = namespaced<Event>('v1', 'Event');
export const configMaps = namespaced<ConfigMap>('v1', 'ConfigMap');
export const secrets = namespaced<Secret>('v1', 'Secret');
export const podDisruptionBudgets = namespaced<PodDisruptionBudget>(
  'policy/v1',
  'PodDisruptionBudget',
);
export const daemonSets = namespaced('apps/v1', 'DaemonSet');
export const jobs = namespaced<Job>('batch/v1', 'Job');
export const namespaces = clusterScoped('v1', 'Namespace');
export const endpointSlices = namespaced<EndpointSlice>('discovery.k8s.io/v1', 'EndpointSlice');
export const leases = namespaced<Lease>('coordination.k8s.io/v1', 'Lease');
export const signingRequests = clusterScoped<SigningRequest>(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
);
export const customResourceDefinitions = clusterScoped<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
);

export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export interface Address {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

export function pathOf(resource: Resource, { namespace, name, subresource }: Address = {}): string {
  const root =
    resource.group === ''
      ? `/api/${resource.version}`
      : `/apis/${resource.group}/${resource.version}`;
  const scope =
    resource.namespaced && namespace !== undefined
      ? `/namespaces/${encodeURIComponent(namespace)}`
      : '';
  const tail = [name, subresource]
    .filter((part) => part !== undefined)
    .map((part) => `/${encodeURIComponent(part)}`);
  return `${root}${scope}/${resource.plural}${tail.join('')}`;
}

/** The key of an object in stores and queues: `namespace/name`, or `name` when cluster-scoped. */
export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return keyAt(name, namespace);
}

export function keyAt(name: string, namespace?: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function splitKey(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/');
  return slash === -1
    ? { name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Negative when `a` is older than `b`. API servers guarantee decimal numbers of any length; throws a SyntaxError otherwise. */
export function compareResourceVersions(a: string, b: string): number {
  return Number(BigInt(a) - BigInt(b));
}

/** Returns the object with these annotations beside its other ones. */
export function annotated<T extends KubeObject>(object: T, more: Record<string, string>): T {
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...more } },
  };
}

export function withoutAnnotations<T extends KubeObject>(
  object: T,
  ...names: readonly string[]
): T {
  const left = Object.entries(object.metadata.annotations ?? {}).filter(
    ([name]) => !names.includes(name),
  );
  return { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(left) } };
}

/** A JSON patch that removes this annotation if it is still as in `object`. */
export function removalOf({ metadata }: KubeObject, name: string): object[] {
  const path = `/metadata/annotations/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const test = { op: 'test', path, value: ownMember(metadata.annotations, name) };
  return [test, { op: 'remove', path }];
}

/** Who gave this field of the spec its value, as the API server recorded it; empty if nothing keeps that. */
export function managersOf({ managedFields = [] }: ObjectMeta, field: string): string[] {
  return managedFields.flatMap(({ manager = '', fieldsV1 }) =>
    ownMember(fieldsV1?.['f:spec'], `f:${field}`) ? manager : [],
  );
}

export function kubeletVersionOf(node: Node | undefined): string | undefined {
  return node?.status?.nodeInfo?.kubeletVersion;
}

/** The Ready condition of a Node or Pod; undefined for objects without one. */
export function readyCondition(
  object: (KubeObject & Pick<Node, 'status'>) | undefined,
): NodeCondition | undefined {
  return object?.status?.conditions?.find(({ type }) => type === 'Ready');
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: {
    manager?: string;
    time?: string;
    fieldsV1?: { 'f:spec'?: Record<string, object> };
  }[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

export interface KubeList<T extends KubeObject> {
  metadata: { resourceVersion?: string; continue?: string };
  items: T[];
}

export interface Status {
  apiVersion?: string;
  kind: 'Status';
  status?: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    kind?: string;
    group?: string;
    retryAfterSeconds?: number;
    causes?: { reason?: string; message?: string; field?: string }[];
  };
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

export interface NodeCondition extends Condition {
  /** By the clock of the kubelet's host, in whole seconds; null if no kubelet has reported it. */
  lastHeartbeatTime?: string | null;
}

export interface Node extends KubeObject {
  spec?: {
    unschedulable?: boolean;
    providerID?: string;
    taints?: { key: string; value?: string; effect: string }[];
  };
  status?: {
    conditions?: NodeCondition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: {
      kubeletVersion?: string;
      machineID?: string;
      systemUUID?: string;
      operatingSystem?: string;
      architecture?: string;
      osImage?: string;
      containerRuntimeVersion?: string;
    };
  };
}

export interface Pod extends KubeObject {
  spec?: {
    nodeName?: string;
    containers?: { name: string; image?: string }[];
    volumes?: { name: string; emptyDir?: unknown }[];
  };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    conditions?: Condition[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

export interface ContainerStatus {
  name: string;
  state?: { waiting?: { reason?: string; message?: string } };
}

/** One that is `{}` selects everything, one that is absent nothing. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** Numbers of pods are integers, or percentages such as `50%`. */
export interface PodDisruptionBudget extends KubeObject {
  spec?: {
    selector?: LabelSelector;
    minAvailable?: number | string;
    maxUnavailable?: number | string;
    unhealthyPodEvictionPolicy?: string;
  };
  status?: {
    observedGeneration?: number;
    disruptionsAllowed?: number;
    currentHealthy?: number;
    desiredHealthy?: number;
    expectedPods?: number;
    conditions?: Condition[];
  };
}

export interface Job extends KubeObject {
  spec?: Record<string, unknown>;
  status?: {
    startTime?: string;
    ready?: number;
    completionTime?: string;
    active?: number;
    failed?: number;
    succeeded?: number;
    conditions?: Condition[];
  };
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** Values are base64. */
export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  immutable?: boolean;
}

/** Times are MicroTime strings: exactly six digits after the point. */
export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

export interface EndpointSlice extends KubeObject {
  endpoints?: { addresses: string[]; nodeName?: string; conditions?: { ready?: boolean } }[];
  ports?: { port?: number }[];
}

export interface Event extends KubeObject {
  involvedObject: {
    apiVersion?: string;
    kind?: string;
    name?: string;
    namespace?: string;
    uid?: string;
  };
  type?: 'Normal' | 'Warning';
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  source?: { component?: string; host?: string };
  reportingComponent?: string;
}

export interface SigningRequest extends KubeObject {
  readonly spec: {
    /** Base64 of PEM. */
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly expirationSeconds?: number;
    /** Who made it, by the API server, as are the groups. */
    readonly username?: string;
    readonly groups?: readonly string[];
  };
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly Condition[] };
}

/** To be written to its subresource `approval`. `now`: RFC 3339. */
export function approved(request: SigningRequest, message: string, now: string): SigningRequest {
  const approval = {
    type: 'Approved',
    status: 'True',
    reason: 'Refit',
    message,
    lastUpdateTime: now,
  } as const;
  return { ...request, status: { ...request.status, conditions: [approval] } };
}

export interface CustomResourceDefinition extends KubeObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly scope: string;
    readonly versions: readonly { readonly name: string; readonly served: boolean }[];
  };
  status?: { conditions?: Condition[] };
}
