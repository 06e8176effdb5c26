/** Reads from a surveyed cluster which Nodes are virtual, which container runtime a kubelet uses, and which versions a host has. */
import type { RolloutPolicy } from '../../../engine/policy/rollout-policy.ts';
import { kubeletVersionOf, type Node } from '../../../kube/resources.ts';
import { virtualBy } from '../../../kube/virtual-nodes.ts';
import { parseVersion } from '../../../util/version.ts';
import { type Finding, warn } from '../../../versions/findings.ts';
import { isNeeded } from '../../../versions/version-rules.ts';
import type { HostFacts } from '../host/probe.ts';
import { STATIC_PODS } from '../host/verify.ts';
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
    warn(
      'Km1',
      `${name} is a virtual Node, because it has the ${shown}: Refit checks no version rule for it`,
    ),
  );
}

/**
 * Returns the container runtime that the kubelet uses, from a text such as `containerd://1.7.29`; undefined if the Node
 * reports no runtime. If its version cannot be parsed, `version` is undefined, and the caller uses the version that was
 * found on the host.
 */
export function runtimeOf(
  node: Node | undefined,
): { readonly name: string; readonly version: string | undefined } | undefined {
  const reported = node?.status?.nodeInfo?.containerRuntimeVersion ?? '';
  const [, name, version] = /^([\w-]+):\/\/(.*)$/.exec(reported) ?? [];
  if (name === undefined) return undefined;
  return { name, version: parseVersion(version) ? version : undefined };
}

export function nodeNamed(name: string, nodes: readonly Node[]): Node | undefined {
  return nodes.find(({ metadata }) => metadata.name === name);
}

/**
 * Returns true if everything that an upgrade changes on the host has the version, and the Node also reports this
 * version.
 */
export function isDone(facts: HostFacts, nodes: readonly Node[], version: string): boolean {
  const found = versionsOn(facts, nodes);
  const known = found.filter((each) => each !== undefined);
  return known.length === found.length && !isNeeded(known, version);
}

/** Returns the versions of everything that an upgrade changes on the host. A version is undefined if it cannot be read. */
export function versionsOn(
  { host, kubeadm, kubelet, staticPods }: HostFacts,
  nodes: readonly Node[],
): (string | undefined)[] {
  const pods = host.role === 'controlPlane' ? STATIC_PODS.map((name) => staticPods[name]) : [];
  return [kubeadm, kubelet, kubeletVersionOf(nodeNamed(host.name, nodes)), ...pods];
}
