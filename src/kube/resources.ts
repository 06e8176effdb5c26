/**
 * Defines the resources with their URL paths, the keys and versions of objects, and the fields that Refit reads.
 * Objects keep all their other fields.
 */
import { ownMember } from '../util/own-member.ts';

/** One kind of the API, with the parts of its URL paths. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** The API group. It is empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** The name of a part of the objects of this kind, if this part is watched with a selection of its own. */
  readonly part?: string;
  /** This member exists only for the compiler, which reads the type of the objects from it. No value ever has it. */
  readonly object?: T;
}

/** Returns a namespaced resource. `plural` is needed only if it is irregular. */
export function namespaced<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural?: string,
): Resource<T> {
  return { ...clusterScoped(apiVersion, kind, plural), namespaced: true };
}

/** Returns a cluster-scoped resource. `plural` is needed only if it is irregular. */
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
export const volumeAttachments = clusterScoped<VolumeAttachment>(
  'storage.k8s.io/v1',
  'VolumeAttachment',
);
export const persistentVolumes = clusterScoped<PersistentVolume>('v1', 'PersistentVolume');
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

/** Returns the apiVersion of the objects, such as `v1` or `apps/v1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export interface Address {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** The names that would make the path of an object the path of something else. The API server accepts no such name. */
const NO_NAMES: readonly string[] = ['', '.', '..'];

/** Returns the name as a segment of a path. Throws if the path would not be the one of an object with this name. */
function segmentOf(name: string): string {
  if (NO_NAMES.includes(name)) throw new Error(`no object can have the name "${name}"`);
  return encodeURIComponent(name);
}

/**
 * Returns the URL path of a resource or of one object. Without a namespace the path covers all
 * namespaces. Throws if no object can have the name.
 */
export function pathOf(resource: Resource, { namespace, name, subresource }: Address = {}): string {
  const root =
    resource.group === ''
      ? `/api/${resource.version}`
      : `/apis/${resource.group}/${resource.version}`;
  const scope =
    resource.namespaced && namespace !== undefined ? `/namespaces/${segmentOf(namespace)}` : '';
  const tail = [name, subresource]
    .filter((part) => part !== undefined)
    .map((part) => `/${segmentOf(part)}`);
  return `${root}${scope}/${resource.plural}${tail.join('')}`;
}

/**
 * Returns the key of an object in stores and queues: `namespace/name`, or `name` if the object is
 * cluster-scoped.
 */
export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return keyAt(name, namespace);
}

/** Returns the same key as `keyOf`, from its parts. */
export function keyAt(name: string, namespace?: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** Splits a key that `keyOf` returned into the name and, if there is one, the namespace. */
export function splitKey(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/');
  return slash === -1
    ? { name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * Returns a negative number if `a` is older than `b`. API servers guarantee decimal numbers of any
 * length. For other texts it throws a SyntaxError.
 */
export function compareResourceVersions(a: string, b: string): number {
  return Number(BigInt(a) - BigInt(b));
}

/** Returns the object with these annotations added. Its other annotations stay. */
export function annotated<T extends KubeObject>(object: T, more: Record<string, string>): T {
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...more } },
  };
}

/** Returns the object without these annotations. */
export function withoutAnnotations<T extends KubeObject>(
  object: T,
  ...names: readonly string[]
): T {
  const left = Object.entries(object.metadata.annotations ?? {}).filter(
    ([name]) => !names.includes(name),
  );
  return { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(left) } };
}

/** Returns a JSON patch that removes an annotation if its value on the server still equals its value in `object`. */
export function removalOf({ metadata }: KubeObject, name: string): object[] {
  return memberRemoval('annotations', name, metadata.annotations);
}

/** Returns a JSON patch that removes a label if its value on the server still equals its value in `object`. */
export function labelRemovalOf({ metadata }: KubeObject, name: string): object[] {
  return memberRemoval('labels', name, metadata.labels);
}

function memberRemoval(
  field: 'annotations' | 'labels',
  name: string,
  members: Record<string, string> | undefined,
): object[] {
  const path = `/metadata/${field}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return [
    { op: 'test', path, value: ownMember(members, name) },
    { op: 'remove', path },
  ];
}

/**
 * Returns the managers that the API server recorded as owners of a field of the spec. The list is
 * empty if there is no such record.
 */
export function managersOf({ managedFields = [] }: ObjectMeta, field: string): string[] {
  return managedFields.flatMap(({ manager = '', fieldsV1 }) =>
    ownMember(fieldsV1?.['f:spec'], `f:${field}`) ? manager : [],
  );
}

/**
 * Returns the version that the kubelet reports; undefined if there is no Node or no report. The API server writes a
 * version that was never reported as an empty text.
 */
export function kubeletVersionOf(node: Node | undefined): string | undefined {
  return node?.status?.nodeInfo?.kubeletVersion || undefined;
}

/** Returns the Ready condition of a Node or Pod, or undefined if the object has none. */
export function readyCondition(
  object: (KubeObject & Pick<Node, 'status'>) | undefined,
): NodeCondition | undefined {
  return object?.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** Returns the condition of this type if it is true; undefined otherwise. */
export function trueCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find((each) => each.type === type && each.status === 'True');
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
    fieldsV1?: {
      'f:spec'?: Record<string, object>;
      'f:metadata'?: { 'f:labels'?: Record<string, object> };
    };
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
  /**
   * The time on the clock of the kubelet's host, in whole seconds. It is null if no kubelet has
   * reported the condition.
   */
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
    containers?: { name: string; image?: string; command?: string[] }[];
    volumes?: {
      name: string;
      emptyDir?: unknown;
      persistentVolumeClaim?: { claimName: string };
      ephemeral?: unknown;
    }[];
    /** The value of the PriorityClass of the pod. The API server sets it. */
    priority?: number;
    priorityClassName?: string;
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
  state?: {
    waiting?: { reason?: string; message?: string };
    terminated?: { exitCode?: number };
  };
}

/** An empty selector (`{}`) selects everything. An absent selector selects nothing. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** The request to attach a volume to a node. The object is deleted after the volume is detached. */
export interface VolumeAttachment extends KubeObject {
  spec: { nodeName: string; attacher: string; source: { persistentVolumeName?: string } };
}

export interface PersistentVolume extends KubeObject {
  spec?: { claimRef?: { name?: string; namespace?: string } };
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

/** The values of `data` are base64. */
export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  immutable?: boolean;
}

/** Times are MicroTime strings with exactly six digits after the point. */
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
    /** The PEM text of the request, in base64. */
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly expirationSeconds?: number;
    /** The user who made the request. The API server sets this field and `groups`. */
    readonly username?: string;
    readonly groups?: readonly string[];
  };
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly Condition[] };
}

/**
 * Returns the request with an approval, which the caller writes to the subresource `approval`.
 * `now` is in RFC 3339.
 */
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
