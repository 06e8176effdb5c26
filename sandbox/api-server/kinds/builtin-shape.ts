/**
 * The fields of the built-in kinds, as Kubernetes 1.36 declares them; `raw` marks fields that are stored without being
 * checked.
 */
import { listOf, pointerTo, type Struct, struct } from '../schema/go-shape.ts';

const ownerReference = struct(
  'OwnerReference',
  'apiVersion! kind! name! uid! controller:*bool blockOwnerDeletion:*bool',
);

/** The metadata of all objects. In a custom object, it is the only part that no schema describes. */
export const objectMeta = struct(
  'ObjectMeta',
  `name generateName namespace selfLink uid resourceVersion generation:int64 creationTimestamp:*time
  deletionTimestamp:*time deletionGracePeriodSeconds:*int64 labels:{}string annotations:{}string finalizers:[]string
  managedFields:[]raw`,
  { ownerReferences: listOf(ownerReference) },
);

/** Describes a whole object: its type and metadata come first. */
const object = (name: string, members: string, nested: Parameters<typeof struct>[2]): Struct =>
  struct(name, `apiVersion kind ${members}`.trim(), { metadata: objectMeta, ...nested });

const condition = (name: string, members = ''): ReturnType<typeof listOf> =>
  listOf(struct(name, `type! status! lastTransitionTime:time reason message ${members}`.trim()));

export const node = object('Node', '', {
  spec: struct(
    'NodeSpec',
    'podCIDR podCIDRs:[]string providerID unschedulable:bool configSource:raw externalID',
    {
      taints: listOf(struct('Taint', 'key! value effect! timeAdded:*time')),
    },
  ),
  status: struct(
    'NodeStatus',
    `capacity:{}quantity allocatable:{}quantity phase images:[]raw volumesInUse:[]string volumesAttached:[]raw config:raw
    runtimeHandlers:[]raw features:raw declaredFeatures:[]string`,
    {
      conditions: condition('NodeCondition', 'lastHeartbeatTime:time'),
      addresses: listOf(struct('NodeAddress', 'type! address!')),
      daemonEndpoints: struct('NodeDaemonEndpoints', '', {
        kubeletEndpoint: struct('DaemonEndpoint', 'Port:int32!'),
      }),
      nodeInfo: struct(
        'NodeSystemInfo',
        `machineID! systemUUID! bootID! kernelVersion! osImage! containerRuntimeVersion! kubeletVersion!
        kubeProxyVersion! operatingSystem! architecture! swap:raw`,
      ),
    },
  ),
});

export const namespace = object('Namespace', '', {
  spec: struct('NamespaceSpec', 'finalizers:[]string'),
  status: struct('NamespaceStatus', 'phase', { conditions: condition('NamespaceCondition') }),
});

const objectReference = struct(
  'ObjectReference',
  'kind namespace name uid apiVersion resourceVersion fieldPath',
);

export const event = object(
  'Event',
  `reason message firstTimestamp:time lastTimestamp:time count:int32 type eventTime:microtime action
  reportingComponent! reportingInstance!`,
  {
    involvedObject: objectReference,
    source: struct('EventSource', 'component host'),
    series: pointerTo(struct('EventSeries', 'count:int32 lastObservedTime:microtime')),
    related: pointerTo(objectReference),
  },
);

export const lease = object('Lease', '', {
  spec: struct(
    'LeaseSpec',
    `holderIdentity:*string leaseDurationSeconds:*int32 acquireTime:*microtime renewTime:*microtime
    leaseTransitions:*int32`,
  ),
});

const labelSelector = struct('LabelSelector', 'matchLabels:{}string', {
  matchExpressions: listOf(struct('LabelSelectorRequirement', 'key! operator! values:[]string')),
});

export const podDisruptionBudget = object('PodDisruptionBudget', '', {
  spec: struct(
    'PodDisruptionBudgetSpec',
    'minAvailable:raw maxUnavailable:raw unhealthyPodEvictionPolicy:*string',
    {
      selector: pointerTo(labelSelector),
    },
  ),
  status: struct(
    'PodDisruptionBudgetStatus',
    `observedGeneration:int64 disruptedPods:{}time disruptionsAllowed:int32! currentHealthy:int32! desiredHealthy:int32!
    expectedPods:int32!`,
    { conditions: condition('Condition', 'observedGeneration:int64') },
  ),
});

const container = struct(
  'Container',
  `name! image command:[]string args:[]string workingDir ports:[]raw envFrom:[]raw env:[]raw resizePolicy:[]raw
  restartPolicy:*string restartPolicyRules:[]raw volumeMounts:[]raw volumeDevices:[]raw livenessProbe:raw
  readinessProbe:raw startupProbe:raw lifecycle:raw terminationMessagePath terminationMessagePolicy imagePullPolicy
  securityContext:raw stdin:bool stdinOnce:bool tty:bool`,
  {
    resources: struct('ResourceRequirements', 'limits:{}quantity requests:{}quantity claims:[]raw'),
  },
);

export const pod = object('Pod', '', {
  spec: struct(
    'PodSpec',
    `volumes:[]raw ephemeralContainers:[]raw restartPolicy terminationGracePeriodSeconds:*int64
    activeDeadlineSeconds:*int64 dnsPolicy nodeSelector:{}string serviceAccountName serviceAccount
    automountServiceAccountToken:*bool nodeName hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:*bool
    securityContext:raw imagePullSecrets:[]raw hostname subdomain affinity:raw schedulerName tolerations:[]raw
    hostAliases:[]raw priorityClassName priority:*int32 dnsConfig:raw readinessGates:[]raw runtimeClassName:*string
    enableServiceLinks:*bool preemptionPolicy:*string overhead:{}quantity topologySpreadConstraints:[]raw
    setHostnameAsFQDN:*bool os:raw hostUsers:*bool schedulingGates:[]raw resourceClaims:[]raw resources:raw
    hostnameOverride:*string schedulingGroup:raw`,
    { initContainers: listOf(container), containers: { ...listOf(container), always: true } },
  ),
  status: struct(
    'PodStatus',
    `observedGeneration:int64 phase message reason nominatedNodeName hostIP hostIPs:[]raw podIP podIPs:[]raw
    startTime:*time initContainerStatuses:[]raw containerStatuses:[]raw qosClass ephemeralContainerStatuses:[]raw resize
    resourceClaimStatuses:[]raw extendedResourceClaimStatus:raw allocatedResources:{}quantity resources:raw`,
    { conditions: condition('PodCondition', 'observedGeneration:int64 lastProbeTime:time') },
  ),
});

export const customResourceDefinition = object('CustomResourceDefinition', 'status:raw', {
  spec: struct(
    'CustomResourceDefinitionSpec',
    'group! scope! conversion:raw preserveUnknownFields:bool',
    {
      names: struct(
        'CustomResourceDefinitionNames',
        'plural! singular shortNames:[]string kind! listKind categories:[]string',
      ),
      versions: listOf(
        struct(
          'CustomResourceDefinitionVersion',
          `name! served:bool! storage:bool! deprecated:bool deprecationWarning:*string schema:raw subresources:raw
        additionalPrinterColumns:[]raw selectableFields:[]raw`,
        ),
      ),
    },
  ),
});

export const job = object('Job', '', {
  spec: struct(
    'JobSpec',
    `parallelism:*int32 completions:*int32 activeDeadlineSeconds:*int64 podFailurePolicy:raw successPolicy:raw
    backoffLimit:*int32 backoffLimitPerIndex:*int32 maxFailedIndexes:*int32 manualSelector:*bool
    ttlSecondsAfterFinished:*int32 completionMode:*string suspend:*bool podReplacementPolicy:*string managedBy:*string`,
    {
      selector: pointerTo(labelSelector),
      template: struct('PodTemplateSpec', 'spec:raw', { metadata: objectMeta }),
    },
  ),
  status: struct(
    'JobStatus',
    `startTime:*time completionTime:*time active:int32 succeeded:int32 failed:int32 terminating:*int32 completedIndexes
    failedIndexes:*string uncountedTerminatedPods:raw ready:*int32`,
    { conditions: condition('JobCondition', 'lastProbeTime:time') },
  ),
});

export const secret = object(
  'Secret',
  'immutable:*bool data:{}string stringData:{}string type',
  {},
);

export const configMap = object(
  'ConfigMap',
  'data:{}string binaryData:{}string immutable:*bool',
  {},
);
