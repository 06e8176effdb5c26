/** Owns the members of the built-in kinds, as Kubernetes 1.36 declares them; `raw` marks what is kept unread. */
import { mapOf, pointerTo, type Struct, struct } from './go-shape.ts';

const ownerReference = struct('OwnerReference', {
  apiVersion: 'string!',
  kind: 'string!',
  name: 'string!',
  uid: 'string!',
  controller: '*bool',
  blockOwnerDeletion: '*bool',
});

export const objectMeta = struct('ObjectMeta', {
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'int64',
  creationTimestamp: '*time',
  deletionTimestamp: '*time',
  deletionGracePeriodSeconds: '*int64',
  labels: mapOf('string'),
  annotations: mapOf('string'),
  ownerReferences: [ownerReference],
  finalizers: ['string'],
  managedFields: ['raw'],
});

const object = (name: string, fields: Struct['fields']): Struct =>
  struct(name, { apiVersion: 'string', kind: 'string', metadata: objectMeta, ...fields });

const taint = struct('Taint', { key: 'string!', value: 'string', effect: 'string!', timeAdded: '*time' });

const nodeCondition = struct('NodeCondition', {
  type: 'string!',
  status: 'string!',
  lastHeartbeatTime: 'time',
  lastTransitionTime: 'time',
  reason: 'string',
  message: 'string',
});

const nodeSystemInfo = struct('NodeSystemInfo', {
  machineID: 'string!',
  systemUUID: 'string!',
  bootID: 'string!',
  kernelVersion: 'string!',
  osImage: 'string!',
  containerRuntimeVersion: 'string!',
  kubeletVersion: 'string!',
  kubeProxyVersion: 'string!',
  operatingSystem: 'string!',
  architecture: 'string!',
  swap: 'raw',
});

export const node = object('Node', {
  spec: struct('NodeSpec', {
    podCIDR: 'string',
    podCIDRs: ['string'],
    providerID: 'string',
    unschedulable: 'bool',
    taints: [taint],
    configSource: 'raw',
    externalID: 'string',
  }),
  status: struct('NodeStatus', {
    capacity: mapOf('quantity'),
    allocatable: mapOf('quantity'),
    phase: 'string',
    conditions: [nodeCondition],
    addresses: [struct('NodeAddress', { type: 'string!', address: 'string!' })],
    daemonEndpoints: struct('NodeDaemonEndpoints', {
      kubeletEndpoint: struct('DaemonEndpoint', { Port: 'int32!' }),
    }),
    nodeInfo: nodeSystemInfo,
    images: ['raw'],
    volumesInUse: ['string'],
    volumesAttached: ['raw'],
    config: 'raw',
    runtimeHandlers: ['raw'],
    features: 'raw',
    declaredFeatures: ['string'],
  }),
});

export const namespace = object('Namespace', {
  spec: struct('NamespaceSpec', { finalizers: ['string'] }),
  status: struct('NamespaceStatus', {
    phase: 'string',
    conditions: [
      struct('NamespaceCondition', {
        type: 'string!',
        status: 'string!',
        lastTransitionTime: 'time',
        reason: 'string',
        message: 'string',
      }),
    ],
  }),
});

const objectReference = struct('ObjectReference', {
  kind: 'string',
  namespace: 'string',
  name: 'string',
  uid: 'string',
  apiVersion: 'string',
  resourceVersion: 'string',
  fieldPath: 'string',
});

export const event = object('Event', {
  involvedObject: objectReference,
  reason: 'string',
  message: 'string',
  source: struct('EventSource', { component: 'string', host: 'string' }),
  firstTimestamp: 'time',
  lastTimestamp: 'time',
  count: 'int32',
  type: 'string',
  eventTime: 'microtime',
  series: pointerTo(struct('EventSeries', { count: 'int32', lastObservedTime: 'microtime' })),
  action: 'string',
  related: pointerTo(objectReference),
  reportingComponent: 'string!',
  reportingInstance: 'string!',
});

export const lease = object('Lease', {
  spec: struct('LeaseSpec', {
    holderIdentity: '*string',
    leaseDurationSeconds: '*int32',
    acquireTime: '*microtime',
    renewTime: '*microtime',
    leaseTransitions: '*int32',
    strategy: '*string',
    preferredHolder: '*string',
  }),
});

export const labelSelector = struct('LabelSelector', {
  matchLabels: mapOf('string'),
  matchExpressions: [struct('LabelSelectorRequirement', { key: 'string!', operator: 'string!', values: ['string'] })],
});

export const podDisruptionBudget = object('PodDisruptionBudget', {
  spec: struct('PodDisruptionBudgetSpec', {
    minAvailable: 'intOrString',
    selector: pointerTo(labelSelector),
    maxUnavailable: 'intOrString',
    unhealthyPodEvictionPolicy: '*string',
  }),
  status: struct('PodDisruptionBudgetStatus', {
    observedGeneration: 'int64',
    disruptedPods: mapOf('time'),
    disruptionsAllowed: 'int32!',
    currentHealthy: 'int32!',
    desiredHealthy: 'int32!',
    expectedPods: 'int32!',
    conditions: [
      struct('Condition', {
        type: 'string!',
        status: 'string!',
        observedGeneration: 'int64',
        lastTransitionTime: 'time',
        reason: 'string!',
        message: 'string!',
      }),
    ],
  }),
});

const container = struct('Container', {
  name: 'string!',
  image: 'string',
  command: ['string'],
  args: ['string'],
  workingDir: 'string',
  ports: ['raw'],
  envFrom: ['raw'],
  env: ['raw'],
  resources: struct('ResourceRequirements', {
    limits: mapOf('quantity'),
    requests: mapOf('quantity'),
    claims: ['raw'],
  }),
  resizePolicy: ['raw'],
  restartPolicy: '*string',
  restartPolicyRules: ['raw'],
  volumeMounts: ['raw'],
  volumeDevices: ['raw'],
  livenessProbe: 'raw',
  readinessProbe: 'raw',
  startupProbe: 'raw',
  lifecycle: 'raw',
  terminationMessagePath: 'string',
  terminationMessagePolicy: 'string',
  imagePullPolicy: 'string',
  securityContext: 'raw',
  stdin: 'bool',
  stdinOnce: 'bool',
  tty: 'bool',
});

const podSpec = struct('PodSpec', {
  volumes: ['raw'],
  initContainers: [container],
  containers: [container],
  ephemeralContainers: ['raw'],
  restartPolicy: 'string',
  terminationGracePeriodSeconds: '*int64',
  activeDeadlineSeconds: '*int64',
  dnsPolicy: 'string',
  nodeSelector: mapOf('string'),
  serviceAccountName: 'string',
  serviceAccount: 'string',
  automountServiceAccountToken: '*bool',
  nodeName: 'string',
  hostNetwork: 'bool',
  hostPID: 'bool',
  hostIPC: 'bool',
  shareProcessNamespace: '*bool',
  securityContext: 'raw',
  imagePullSecrets: ['raw'],
  hostname: 'string',
  subdomain: 'string',
  affinity: 'raw',
  schedulerName: 'string',
  tolerations: ['raw'],
  hostAliases: ['raw'],
  priorityClassName: 'string',
  priority: '*int32',
  dnsConfig: 'raw',
  readinessGates: ['raw'],
  runtimeClassName: '*string',
  enableServiceLinks: '*bool',
  preemptionPolicy: '*string',
  overhead: mapOf('quantity'),
  topologySpreadConstraints: ['raw'],
  setHostnameAsFQDN: '*bool',
  os: 'raw',
  hostUsers: '*bool',
  schedulingGates: ['raw'],
  resourceClaims: ['raw'],
  resources: 'raw',
  hostnameOverride: '*string',
  schedulingGroup: 'raw',
});

const podStatus = struct('PodStatus', {
  observedGeneration: 'int64',
  phase: 'string',
  conditions: [
    struct('PodCondition', {
      type: 'string!',
      observedGeneration: 'int64',
      status: 'string!',
      lastProbeTime: 'time',
      lastTransitionTime: 'time',
      reason: 'string',
      message: 'string',
    }),
  ],
  message: 'string',
  reason: 'string',
  nominatedNodeName: 'string',
  hostIP: 'string',
  hostIPs: ['raw'],
  podIP: 'string',
  podIPs: ['raw'],
  startTime: '*time',
  initContainerStatuses: ['raw'],
  containerStatuses: ['raw'],
  qosClass: 'string',
  ephemeralContainerStatuses: ['raw'],
  resize: 'string',
  resourceClaimStatuses: ['raw'],
  extendedResourceClaimStatus: 'raw',
  allocatedResources: mapOf('quantity'),
  resources: 'raw',
});

export const pod = object('Pod', { spec: podSpec, status: podStatus });
