/**
 * Says which feature gates of kubeadm the control plane provider of Cluster API adds to a KubeadmConfig or leaves out by
 * itself, because of the Kubernetes version. Nobody has asked for such a change, and kubeadm needs nothing from the host
 * for it.
 */
import { parseVersion } from '../util/version.ts';

interface OwnGate {
  readonly gate: string;
  readonly value: boolean;
  /** The first minor of Kubernetes 1 for which Cluster API sets the gate, unless the user has set it. */
  readonly sinceMinor: number;
  /** The first minor of Kubernetes 1 for which Cluster API no longer sets the gate. */
  readonly untilMinor: number;
}

/**
 * The source is the function `DefaultFeatureGates` of KubeadmControlPlane in
 * https://github.com/kubernetes-sigs/cluster-api/blob/main/controlplane/kubeadm/internal/desiredstate/desired_state.go.
 * A pre-release counts as its release there, too.
 */
const OWN_GATES: readonly OwnGate[] = [
  { gate: 'ControlPlaneKubeletLocalMode', value: true, sinceMinor: 31, untilMinor: 36 },
];

/** Returns the gates that Cluster API sets by itself for this version of Kubernetes; undefined if the text is no version. */
export function gatesOfClusterApi(text: string): Readonly<Record<string, boolean>> | undefined {
  const version = parseVersion(text);
  if (version === undefined) return undefined;
  const { major, minor } = version;
  const set = OWN_GATES.filter(
    ({ sinceMinor, untilMinor }) => major === 1 && minor >= sinceMinor && minor < untilMinor,
  );
  return Object.fromEntries(set.map(({ gate, value }) => [gate, value]));
}
