/**
 * Chooses the version for a run if the target is several minor versions newer than the present version. The upgrade
 * then consists of several hops, and each hop has its own binaries.
 */
import type { ConfigMap } from '../../../kube/resources.ts';
import { compareVersionTexts } from '../../../util/version.ts';
import { canStay } from '../../../versions/version-rules.ts';
import type { HostFacts } from '../host/probe.ts';
import { controlPlaneOf, type Manifest, type ManifestHost } from './manifest.ts';
import { openRequest } from './plan-object.ts';

export interface Hop {
  /** The manifest of this hop. It does not contain workers that stay at their version. */
  readonly manifest: Manifest;
  /** The versions of the hops that follow, as texts for people. */
  readonly later: readonly string[];
  /** A sentence that says which workers stay at their version and when they are upgraded; empty if no worker stays. */
  readonly stay: string;
}

/**
 * Returns the hop of the run that has not ended. If there is no such run, returns the first hop whose version is still
 * missing on a host.
 */
export function nextHop(
  manifest: Manifest,
  facts: readonly HostFacts[],
  plan: ConfigMap | undefined,
): Hop {
  const open = openRequest(plan);
  const way = wayOf(manifest, facts);
  const at = way.findIndex(({ version, hosts }) => {
    if (open !== undefined) return version === open.version;
    const own = facts.filter(({ host }) => hosts.some(({ name }) => name === host.name));
    const found = own.flatMap(({ kubeadm, kubelet, staticPods }) => [
      kubeadm,
      kubelet,
      staticPods['kube-apiserver'],
    ]);
    return found.some((each) => compareVersionTexts(each, version) < 0);
  });
  const { version, binaries, hosts } = way[at] ?? manifest;
  const after = at === -1 ? [] : way.slice(at + 1);
  // If the run that has not ended includes workers, this hop includes all workers.
  const stays = hosts !== manifest.hosts && (open?.workers ?? []).length === 0;
  const staying = manifest.hosts
    .filter((host) => stays && !hosts.includes(host))
    .map(({ name }) => name);
  const chosen = stays ? hosts : manifest.hosts;
  const next = after.find((hop) => hop.hosts === manifest.hosts)?.version;
  return {
    manifest: {
      ...manifest,
      version,
      binaries,
      hosts: chosen.map((host) => hostAt(host, version, manifest.version)),
    },
    later: after.map((hop) =>
      hop.hosts === manifest.hosts ? hop.version : `${hop.version} (without workers)`,
    ),
    stay: staying.length === 0 ? '' : `Stays at its version until ${next}: ${staying.join(', ')}`,
  };
}

/** Returns the host with only the binaries that are meant for this host and for `version`. */
function hostAt(host: ManifestHost, version: string, last: string): ManifestHost {
  const { hops, binaries, ...others } = host;
  const own = version === last ? binaries : hops?.find((hop) => hop.version === version)?.binaries;
  return own === undefined ? others : { ...others, binaries: own };
}

/**
 * Returns the hops with the hosts that each hop upgrades. Workers that may skip minor versions are upgraded as late as
 * possible. The limit is that their kubelets must not be too old for the API servers of the next hop.
 */
function wayOf(manifest: Manifest, facts: readonly HostFacts[]) {
  const hops = [...manifest.hops, manifest];
  let kubelets = facts.filter(({ host }) => host.role === 'worker').map(({ kubelet }) => kubelet);
  const skips = manifest.workersSkipMinors && kubelets.length > 0;
  return hops.map(({ version, binaries }, index) => {
    const next = hops[index + 1]?.version;
    const stay = skips && next !== undefined && kubelets.every((each) => canStay(each, next));
    if (!stay) kubelets = [version];
    return { version, binaries, hosts: stay ? controlPlaneOf(manifest) : manifest.hosts };
  });
}
