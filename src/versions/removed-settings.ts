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
