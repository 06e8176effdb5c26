/** Defines what the checks keep of a pod. */
import type { KubeObject, LabelSelector, Pod } from '../kube/resources.ts';
import { defined } from '../util/json.ts';

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeRequirement[];
  readonly matchFields?: readonly NodeRequirement[];
}

export interface NodeRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly namespaces?: readonly string[];
  readonly topologyKey: string;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
  readonly labelSelector?: LabelSelector;
  readonly minDomains?: number;
  readonly matchLabelKeys?: readonly string[];
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
}

interface Requests {
  readonly requests?: Readonly<Record<string, string>>;
}

interface PlacedContainer {
  readonly name: string;
  readonly image?: string;
  readonly command?: string[];
  readonly args?: string[];
  readonly resources?: Requests;
  readonly restartPolicy?: string;
  readonly ports?: readonly {
    readonly hostPort?: number;
    readonly protocol?: string;
    readonly hostIP?: string;
  }[];
}

/** The fields of a pod that decide where it may run. */
export interface PlacedSpec {
  readonly nodeName?: string;
  readonly containers?: PlacedContainer[];
  readonly initContainers?: readonly PlacedContainer[];
  readonly resources?: Requests;
  readonly overhead?: Readonly<Record<string, string>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
      };
    };
    readonly podAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
    };
    readonly podAntiAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
    };
  };
  readonly topologySpreadConstraints?: readonly SpreadConstraint[];
  readonly schedulerName?: string;
  readonly schedulingGates?: readonly unknown[];
  readonly resourceClaims?: readonly unknown[];
  readonly hostNetwork?: boolean;
  readonly priority?: number;
  readonly volumes?: NonNullable<NonNullable<Pod['spec']>['volumes']>;
}

export type PlacedPod = Omit<Pod, 'spec'> & KubeObject & { readonly spec?: PlacedSpec };

/** Returns a pod with only the fields that the checks read. */
export function slimPod({ metadata, spec = {}, status = {} }: Pod): Pod {
  const { name, namespace, uid, labels, annotations, ownerReferences, deletionTimestamp } =
    metadata;
  const kept = annotations && keptAnnotations(annotations);
  return {
    metadata: {
      name,
      ...defined({ namespace, uid, labels, ownerReferences, deletionTimestamp, annotations: kept }),
    },
    spec: {
      ...slimSpec(spec, kept?.[MIRROR] !== undefined),
      // Only the ServiceAccounts of Refit's own processes matter.
      ...(ownComponentOf(metadata) !== undefined &&
        defined({ serviceAccountName: accountOf(spec) })),
    },
    status: defined({
      phase: status.phase,
      conditions: status.conditions?.filter(({ type }) => KEPT_CONDITIONS.includes(type)),
    }),
  };
}

/** Returns the component of Refit whose pod this is; undefined for a pod of another product. */
export function ownComponentOf({ labels }: Pod['metadata']): string | undefined {
  if (labels?.['app.kubernetes.io/name'] !== 'refit') return undefined;
  return labels['app.kubernetes.io/component'];
}

/** Returns the name of the ServiceAccount of the pod. */
export function accountOf(spec: object): string | undefined {
  return (spec as { readonly serviceAccountName?: string }).serviceAccountName;
}

function slimSpec(spec: PlacedSpec, isStatic: boolean): PlacedSpec {
  const { containers, initContainers, volumes = [] } = spec;
  const { nodeName, resources, overhead, nodeSelector, tolerations, affinity } = spec;
  const { topologySpreadConstraints, schedulerName, schedulingGates, resourceClaims, priority } =
    spec;
  const relevant = volumes.filter(
    ({ emptyDir, persistentVolumeClaim, ephemeral }) =>
      emptyDir !== undefined || persistentVolumeClaim !== undefined || ephemeral !== undefined,
  );
  return defined({
    nodeName,
    resources,
    overhead,
    nodeSelector,
    tolerations,
    affinity,
    topologySpreadConstraints,
    schedulerName,
    schedulingGates,
    resourceClaims,
    priority,
    containers: containers?.map((each) => slimContainer(each, isStatic)),
    initContainers: initContainers?.map((each) => slimContainer(each, isStatic)),
    volumes: relevant.map(({ name, emptyDir, persistentVolumeClaim, ephemeral }) => ({
      name,
      ...(emptyDir !== undefined && { emptyDir: {} }),
      ...(persistentVolumeClaim !== undefined && { persistentVolumeClaim }),
      ...(ephemeral !== undefined && { ephemeral: {} }),
    })),
  }) as PlacedSpec;
}

const KEPT_CONDITIONS = ['Ready', 'PodScheduled'];

const MIRROR = 'kubernetes.io/config.mirror';

function keptAnnotations(annotations: Record<string, string>): Record<string, string> {
  const mirror = annotations[MIRROR];
  return mirror === undefined ? {} : { [MIRROR]: mirror };
}

function slimContainer(container: PlacedContainer, isStatic: boolean) {
  const { name, image, command, args, resources, restartPolicy, ports } = container;
  const hostPorts = ports?.filter(({ hostPort }) => hostPort !== undefined && hostPort !== 0);
  return {
    name,
    image,
    restartPolicy,
    // Only static pods show the flags of a component of Kubernetes.
    ...(isStatic ? { command, args } : {}),
    ...(resources?.requests !== undefined && { resources: { requests: resources.requests } }),
    ...(hostPorts !== undefined && hostPorts.length > 0 && { ports: hostPorts }),
  };
}
