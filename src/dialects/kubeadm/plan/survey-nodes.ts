/** Reads from the Nodes of a surveyed cluster which of them are virtual, and which container runtime a kubelet uses. */
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import type { Node } from '../../../kube/resources.ts';
import { virtualBy } from '../../../kube/virtual-nodes.ts';
import { parseVersion } from '../../../util/version.ts';
import { type Finding, warn } from '../../../versions/findings.ts';
import type { Manifest } from './manifest.ts';

interface Surveyed {
  readonly manifest: Manifest;
  readonly nodes: readonly Node[];
  readonly policy: RolloutPolicy;
}

/**
 * Returns the reasons why Nodes count as virtual, by their names. A Node that the manifest lists is
 * never virtual.
 */
export function virtualNodes({ manifest, nodes, policy }: Surveyed): ReadonlyMap<string, string> {
  if (policy.countsVirtual === true) return new Map();
  const listed = new Set(manifest.hosts.map(({ name }) => name));
  const others = nodes.filter(({ metadata }) => !listed.has(metadata.name));
  return new Map(
    others.flatMap((node) => {
      const shown = virtualBy(node);
      return shown === undefined ? [] : [[node.metadata.name, shown] as const];
    }),
  );
}

export function virtualFindings(survey: Surveyed): Finding[] {
  return [...virtualNodes(survey)].map(([name, shown]) =>
    warn('Km1', `${name} is a virtual Node by its ${shown}: Refit checks no version rule for it`),
  );
}

/**
 * Returns the container runtime that the kubelet uses, from a text such as `containerd://1.7.29`. If the version cannot be
 * parsed, the check on the host decides.
 */
export function runtimeOf(
  node: Node | undefined,
): { readonly name: string; readonly version: string | undefined } | undefined {
  const reported = node?.status?.nodeInfo?.containerRuntimeVersion ?? '';
  const [, name, version] = /^([\w-]+):\/\/(.*)$/.exec(reported) ?? [];
  if (name === undefined) return undefined;
  return { name, version: parseVersion(version) ? version : undefined };
}
