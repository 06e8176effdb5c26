/** The shapes of the Kubernetes objects that Refit reads, as interfaces over plain JSON: fields not named here survive. */

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

/** What an API server answers instead of an object when a request fails. */
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
  endpoints?: { addresses: string[]; conditions?: { ready?: boolean } }[];
  ports?: { port?: number }[];
}

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  name?: string;
  namespace?: string;
  uid?: string;
}

export interface Event extends KubeObject {
  involvedObject: ObjectReference;
  type?: 'Normal' | 'Warning';
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  source?: { component?: string; host?: string };
  reportingComponent?: string;
}
