/**
 * Lists settings that a minor version of Kubernetes no longer has. A component with such a setting does not start. The
 * lists have only what was checked in the sources that each row names.
 */
import { parseVersion } from '../util/version.ts';

export interface Removal {
  readonly name: string;
  /** The first minor version of v1 without the setting. */
  readonly since: number;
  /** The change that removed it, and a report of what happens then. */
  readonly sources: readonly string[];
  /** A file from which kubeadm, or Refit, removes the setting during an upgrade. */
  readonly cleanedIn?: string;
}

export type ConfiguredComponent = 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

const KUBELET_FLAGS: readonly Removal[] = [
  {
    name: 'pod-infra-container-image',
    since: 35,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/133779',
      'https://github.com/kubernetes-sigs/image-builder/pull/1866',
    ],
    // https://github.com/kubernetes/kubernetes/pull/133778
    cleanedIn: '/var/lib/kubelet/kubeadm-flags.env',
  },
];

/** Feature gates are the same for all components. A component refuses a gate that it does not know. */
const FEATURE_GATES: readonly Removal[] = [
  {
    name: 'KubeProxyDrainingTerminatingNodes',
    since: 33,
    sources: ['https://github.com/kubernetes/kubernetes/pull/129692'],
  },
  {
    name: 'SizeMemoryBackedVolumes',
    since: 35,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/133720',
      'https://github.com/kubernetes/website/pull/52696',
    ],
  },
  {
    name: 'UserNamespacesPodSecurityStandards',
    since: 35,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/132157',
      'https://github.com/siderolabs/talos/issues/13480',
    ],
  },
];

const CLOUD_FLAGS = ['cloud-provider', 'cloud-config'];
const DELAY_FLAGS = [
  'horizontal-pod-autoscaler-upscale-delay',
  'horizontal-pod-autoscaler-downscale-delay',
];

/** Flags of the static pods that kubeadm configures, by component. */
const COMPONENT_FLAGS: Readonly<Record<ConfiguredComponent, readonly Removal[]>> = {
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
  'kube-scheduler': [],
};

/** Feature gates of kubeadm itself, which are no feature gates of components. `kubeadm init` refuses a gate that it does not know. */
const KUBEADM_GATES: readonly Removal[] = [
  {
    name: 'EtcdLearnerMode',
    since: 33,
    sources: [
      'https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init/#feature-gates',
    ],
  },
  {
    name: 'WaitForAllControlPlaneComponents',
    since: 35,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/134781',
      'https://github.com/kubernetes/website/pull/52878',
    ],
  },
  {
    name: 'ControlPlaneKubeletLocalMode',
    since: 36,
    sources: [
      'https://github.com/kubernetes/kubernetes/pull/135773',
      'https://github.com/vexxhost/magnum-cluster-api/issues/1065',
    ],
  },
];

/** Returns the flag of the component with this name, if `version` does not have it any more. */
export function removedComponentFlag(
  component: ConfiguredComponent,
  name: string,
  version: string,
): Removal | undefined {
  return removed(COMPONENT_FLAGS[component], name, version);
}

/** Returns the feature gate of kubeadm with this name, if kubeadm of `version` does not have it any more. */
export function removedKubeadmGate(name: string, version: string): Removal | undefined {
  return removed(KUBEADM_GATES, name, version);
}

/** Returns the flag of the kubelet with this name, if `version` does not have it any more. */
export function removedKubeletFlag(name: string, version: string): Removal | undefined {
  return removed(KUBELET_FLAGS, name, version);
}

/** Returns the feature gate with this name, if `version` does not have it any more. */
export function removedFeatureGate(name: string, version: string): Removal | undefined {
  return removed(FEATURE_GATES, name, version);
}

function removed(list: readonly Removal[], name: string, version: string): Removal | undefined {
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  return list.find((each) => each.name === name && (major > 1 || minor >= each.since));
}

/** Returns the names of the gates in a value such as `A=true,B=false`. */
export function gateNamesIn(value: string): string[] {
  return value
    .split(',')
    .map((each) => each.split('=', 1)[0]?.trim() ?? '')
    .filter((name) => name !== '');
}
