/** Chooses the hop of a run where the target is several minor versions away: each has its own binaries. */
import type { ConfigMap } from '../../kube/resources.ts';
import type { HostFacts } from '../../kubeadm/probe.ts';
import { compareVersions, parseVersion } from '../../util/version.ts';
import type { Manifest } from './manifest.ts';
import { openRequest } from './plan-object.ts';

export interface Hop {
  readonly manifest: Manifest;
  readonly later: readonly string[];
}

/** That of a run that is not over, else the first version that a host does not have yet. */
export function nextHop(manifest: Manifest, facts: readonly HostFacts[], plan: ConfigMap | undefined): Hop {
  const way = [...manifest.hops, manifest];
  const open = openRequest(plan)?.version;
  const found = facts
    .flatMap(({ kubeadm, kubelet, staticPods }) => [kubeadm, kubelet, staticPods['kube-apiserver']])
    .flatMap((text) => parseVersion(text ?? '') ?? []);
  const isMissing = (wanted: string): boolean => {
    const version = parseVersion(wanted);
    return version !== undefined && found.some((each) => compareVersions(each, version) < 0);
  };
  const at = way.findIndex(({ version }) => (open === undefined ? isMissing(version) : version === open));
  const { version, binaries } = way[at] ?? manifest;
  const later = at === -1 ? [] : way.slice(at + 1).map((hop) => hop.version);
  return { manifest: { ...manifest, version, binaries }, later };
}
