/**
 * Has the facts of versions that no file in the sources of Kubernetes states. Each fact has a link to the text that
 * states it. All numbers are minor versions of Kubernetes 1. docs/internals/new-minor.md asks a question for each of them.
 */
import type { Component } from '../minor-facts.ts';

/** Upstream maintains this many minor versions at a time: https://kubernetes.io/releases/version-skew-policy/. */
export const MAINTAINED_MINORS = 3;

/**
 * From this minor version on, a kubelet may be three minor versions older than the API server. An older kubelet may be
 * only two minor versions older: https://kubernetes.io/releases/version-skew-policy/.
 */
export const THREE_BEHIND_FROM = 25;

/**
 * The most minor versions by which a worker of k0s may be older than a controller while a cluster is upgraded:
 * https://docs.k0sproject.io/stable/version-skew-policy/. Kubernetes itself allows three.
 */
export const K0S_MOST_BEHIND = 1;

/** The minor versions from which on upstream requires something of a host, or no longer requires it. */
export const HOST_REQUIREMENTS = {
  /** kubeadm only warns about a kernel that it does not support: https://github.com/kubernetes/kubernetes/pull/131919. */
  kernelIsWarnedOf: 34,
  /**
   * `failCgroupV1` is true by default: https://github.com/kubernetes/kubernetes/pull/134298. v1.37 still has the
   * setting.
   */
  cgroupV1IsRefused: 35,
  /**
   * kubeadm warns about runtimes without RuntimeConfig, such as containerd 1.x:
   * https://github.com/kubernetes/kubernetes/pull/134906.
   */
  containerd1IsWarnedOf: 35,
  /**
   * k0s brings containerd 2, and its worker does not start with configuration of containerd 1:
   * https://github.com/k0sproject/k0s/issues/7689.
   */
  k0sRefusesConfigurationOfContainerd1: 36,
  /**
   * The kubelet does not start with containerd 1.x. This was planned for v1.36 and postponed:
   * https://github.com/kubernetes/kubernetes/pull/136846, https://github.com/kubernetes/enhancements/pull/6087.
   */
  containerd1IsRefused: 38,
} as const;

/**
 * The first patch of each minor version in which kubeadm no longer makes the API server an administrator of the cluster, so
 * that it needs the ClusterRole `system:kubelet-api-admin` to reach kubelets. Each later minor version has the change:
 * https://github.com/kubernetes/kubernetes/pull/138957.
 */
export const API_SERVER_NEEDS_KUBELET_RIGHTS: ReadonlyMap<number, number> = new Map([
  [33, 12],
  [34, 8],
  [35, 5],
  [36, 1],
]);

export interface EtcdStep {
  /** The minor version of etcd 3 to which the step goes. */
  readonly to: number;
  /** The patch that a member must have before the step. */
  readonly needed: number;
  /** The patch that a member should have before the step. */
  readonly advised: number;
}

/** The patches that members of etcd need before they go to the next minor version of etcd. */
export const ETCD_STEPS: readonly EtcdStep[] = [
  // The source is https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/.
  { to: 7, needed: 0, advised: 11 },
  // Before 3.5.20 a member may become a learner again in 3.6:
  // https://etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue_followup/. Before 3.5.26 removed members may reappear:
  // https://etcd.io/blog/2025/zombie_members_upgrade/.
  { to: 6, needed: 20, advised: 26 },
];

/** The name of a flag or a feature gate, and texts about its removal. */
export interface RemovalNote {
  readonly name: string;
  /** The change that removed it, and a report of what happens then. */
  readonly sources: readonly string[];
  /** A file from which kubeadm, or Refit, removes the setting during an upgrade. */
  readonly cleanedIn?: string;
}

/** A removal before the oldest minor version whose sources were read. */
export interface EarlyRemoval extends RemovalNote {
  readonly since: number;
}

const CLOUD_FLAGS = ['cloud-provider', 'cloud-config'];
const DELAY_FLAGS = [
  'horizontal-pod-autoscaler-upscale-delay',
  'horizontal-pod-autoscaler-downscale-delay',
];

/** The flags that a component lost before the oldest minor version with facts, or in that version. */
export const EARLY_FLAGS: Readonly<Partial<Record<Component, readonly EarlyRemoval[]>>> = {
  'kube-apiserver': CLOUD_FLAGS.map((name) => ({
    name,
    since: 33,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/130162',
      'https://github.com/vexxhost/capo-image-elements/issues/47',
    ],
  })),
  'kube-controller-manager': DELAY_FLAGS.map((name) => ({
    name,
    since: 31,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/124948',
      'https://github.com/kubernetes/sig-release/pull/2549',
    ],
  })),
};

/** The feature gates that Kubernetes lost before the oldest minor version with facts, or in that version. */
export const EARLY_GATES: readonly EarlyRemoval[] = [
  {
    name: 'KubeProxyDrainingTerminatingNodes',
    since: 33,
    sources: ['https://github.com/kubernetes/kubernetes/pull/129692'],
  },
];

/** The feature gates of kubeadm itself that kubeadm lost before the oldest minor version with facts, or in that version. */
export const EARLY_KUBEADM_GATES: readonly EarlyRemoval[] = [
  {
    name: 'EtcdLearnerMode',
    since: 33,
    sources: [
      'https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init/#feature-gates',
    ],
  },
];

/** Texts about removals that the sources of the minor versions show. */
export const REMOVAL_NOTES: readonly RemovalNote[] = [
  {
    name: 'pod-infra-container-image',
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/133779',
      'https://github.com/kubernetes-sigs/image-builder/pull/1866',
    ],
    // https://github.com/kubernetes/kubernetes/pull/133778
    cleanedIn: '/var/lib/kubelet/kubeadm-flags.env',
  },
  {
    name: 'SizeMemoryBackedVolumes',
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/133720',
      'https://github.com/kubernetes/website/pull/52696',
    ],
  },
  {
    name: 'UserNamespacesPodSecurityStandards',
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/132157',
      'https://github.com/siderolabs/talos/issues/13480',
    ],
  },
  {
    name: 'WaitForAllControlPlaneComponents',
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/134781',
      'https://github.com/kubernetes/website/pull/52878',
    ],
  },
  {
    name: 'ControlPlaneKubeletLocalMode',
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/135773',
      'https://github.com/vexxhost/magnum-cluster-api/issues/1065',
    ],
  },
];

export interface OwnGate {
  readonly gate: string;
  readonly value: boolean;
  /** The first minor for which Cluster API sets the gate, unless the user has set it. */
  readonly sinceMinor: number;
  /** The first minor for which Cluster API no longer sets the gate. */
  readonly untilMinor: number;
}

/**
 * The feature gates of kubeadm that the control plane provider of Cluster API sets by itself. The source is the function
 * `DefaultFeatureGates` of KubeadmControlPlane in
 * https://github.com/kubernetes-sigs/cluster-api/blob/main/controlplane/kubeadm/internal/desiredstate/desired_state.go.
 * A pre-release counts as its release there, too.
 */
export const CLUSTER_API_GATES: readonly OwnGate[] = [
  { gate: 'ControlPlaneKubeletLocalMode', value: true, sinceMinor: 31, untilMinor: 36 },
];

export interface RemovedApi {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly removedIn: string;
  /** The version of the same group that replaces this version. */
  readonly successor?: string;
}

const FLOW = { group: 'flowcontrol.apiserver.k8s.io' };
const PRIORITY = { ...FLOW, kind: 'PriorityLevelConfiguration' };

/**
 * The removed APIs for which k0s refuses a Plan. The source is
 * https://github.com/k0sproject/k0s/blob/main/pkg/autopilot/checks/removed_apis.go. k0s uses the last entry only for
 * tests. With the same list, k0s and Refit refuse the same Plans.
 */
export const K0S_REMOVED_APIS: readonly RemovedApi[] = [
  { ...FLOW, version: 'v1beta2', kind: 'FlowSchema', removedIn: 'v1.29.0', successor: 'v1beta3' },
  { ...PRIORITY, version: 'v1beta2', removedIn: 'v1.29.0', successor: 'v1' },
  { ...FLOW, version: 'v1beta3', kind: 'FlowSchema', removedIn: 'v1.32.0', successor: 'v1' },
  { ...PRIORITY, version: 'v1beta3', removedIn: 'v1.32.0', successor: 'v1' },
  {
    group: 'k0s.k0sproject.example.com',
    version: 'v1beta1',
    kind: 'RemovedCRD',
    removedIn: 'v99.99.99',
  },
];
