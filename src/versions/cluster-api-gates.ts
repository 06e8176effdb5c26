/**
 * Says which feature gates of kubeadm the control plane provider of Cluster API adds to a KubeadmConfig or leaves out by
 * itself, because of the Kubernetes version. Nobody has asked for such a change, and kubeadm needs nothing from the host
 * for it.
 */
import { parseVersion } from '../util/version.ts';
import { CLUSTER_API_GATES } from './data/by-hand.ts';

/** Returns the gates that Cluster API sets by itself for this version of Kubernetes; undefined if the text is no version. */
export function gatesOfClusterApi(text: string): Readonly<Record<string, boolean>> | undefined {
  const version = parseVersion(text);
  if (version === undefined) return undefined;
  const { major, minor } = version;
  const set = CLUSTER_API_GATES.filter(
    ({ sinceMinor, untilMinor }) => major === 1 && minor >= sinceMinor && minor < untilMinor,
  );
  return Object.fromEntries(set.map(({ gate, value }) => [gate, value]));
}
