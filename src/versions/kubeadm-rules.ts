/** The facts that the version rules judge, and the rules of kubeadm, of etcd, and of what a kubelet requires of its host. */

import { compareVersions, minorsBetween, parseVersion, type Version } from '../util/version.ts';
import { type Finding, force, hard, type RuleName, warn } from './findings.ts';

export function kubeadmFindings({ kubeadm, target }: VersionFacts): Iterable<Finding> {
  if (!kubeadm) return [];
  const own = parseVersion(kubeadm.version);
  const cluster = parseVersion(kubeadm.cluster);
  if (!own) return [hard('Km1', 'the version of kubeadm cannot be read')];
  const to = parseVersion(target ?? kubeadm.version);
  if (!to || (kubeadm.verb === 'apply' && !cluster))
    return [hard('Km1', 'the version of the cluster cannot be read')];
  return kubeadm.verb === 'apply' && cluster
    ? applyFindings(own, cluster, to)
    : upgradeNodeFindings(own, cluster, kubeadm.managedBy);
}

function* applyFindings(own: Version, cluster: Version, to: Version): Iterable<Finding> {
  // For a pre-release, kubeadm allows with --force what it refuses for a release.
  const strict = to.pre === '' ? hard : force;
  if (to.minor < own.minor - 1)
    yield hard('Km2', `kubeadm 1.${own.minor} goes no lower than 1.${own.minor - 1}.0`);
  const step = `the cluster ${brokenStep(cluster, to)?.message}`;
  if (to.minor > cluster.minor + 1) yield strict('Km3', step);
  if (to.minor < cluster.minor - 1) yield strict('Km4', step);
  else if (to.minor < cluster.minor) yield hard('R12', step);
  if (own.minor < to.minor)
    yield strict('Km5', `kubeadm 1.${own.minor} cannot bring a cluster to 1.${to.minor}`);
  else if (own.minor > to.minor)
    yield force(
      'Ks2',
      `kubeadm 1.${own.minor} brings clusters to its own minor version, not to 1.${to.minor}`,
    );
  else if (compareVersions(own, to) < 0 && to.pre === '')
    yield force('Ks1', `kubeadm has an older patch than the target 1.${to.minor}.${to.patch}`);
}

function* upgradeNodeFindings(
  own: Version,
  cluster: Version | undefined,
  managedBy?: string,
): Iterable<Finding> {
  const before = parseVersion(managedBy);
  if (managedBy !== undefined && !before)
    yield hard('Km1', `the version that the node has now cannot be read (${managedBy})`);
  if (before && own.minor - before.minor > 1)
    yield hard(
      'Kd',
      `the node was last managed by kubeadm 1.${before.minor}: 1.${own.minor} is more than one minor version on`,
    );
  if (!cluster) return;
  if (own.minor < cluster.minor)
    yield hard('Kd', `kubeadm 1.${own.minor} is older than the cluster at 1.${cluster.minor}`);
  const first = `the cluster is still recorded at 1.${cluster.minor}: \`kubeadm upgrade apply\` on the first control-plane host comes first`;
  if (own.minor > cluster.minor) yield hard('Kd', first);
}

const IGNORE = 'kubeadm needs ignorePreflightErrors: [SystemVerification]';

/** Minor versions of v1 in which upstream begins or ends to require something of a host. */
const SINCE = {
  /** kubeadm refuses Linux before 4.19: kubernetes/system-validators#48. */
  kernelIsRefused: 32,
  /** From here on kubeadm only warns of an old kernel: kubernetes/kubernetes#131919. */
  kernelIsWarnedOf: 34,
  /** `failCgroupV1` is true by default: kubernetes/kubernetes#134298. v1.37 still has the setting. */
  cgroupV1IsRefused: 35,
  /** kubeadm warns of runtimes without RuntimeConfig, as containerd 1.x is: kubernetes/kubernetes#134906. */
  containerd1IsWarnedOf: 35,
  /** The kubelet does not start with them. First planned for v1.36, put off by kubernetes/kubernetes#136846 and kubernetes/enhancements#6087. */
  containerd1IsRefused: 38,
} as const;

/** True if a kubelet of this version does not start on cgroup v1, unless `failCgroupV1: false` allows that. */
export function refusesCgroupV1({ major, minor }: Version): boolean {
  return major > 1 || minor >= SINCE.cgroupV1IsRefused;
}

export function* nodeFindings(
  node: NodeFacts | undefined,
  target: Version | undefined,
): Iterable<Finding> {
  if (!node || !target) return;
  yield* cgroupFindings(node, target);
  yield* containerdFindings(node, target);
  yield* kernelFindings(node, target);
}

/** kubeadm has a check of its own for the same, by that name: where it ignores that, the rule only warns. */
function unlessIgnored(
  rule: RuleName,
  { ignores = [] }: NodeFacts,
  check: 'SystemVerification' | 'ContainerRuntimeVersion',
  message: string,
): Finding {
  const isIgnored = ignores.some((name) =>
    ['all', check.toLowerCase()].includes(name.toLowerCase()),
  );
  return isIgnored
    ? warn(rule, `${message}; ignorePreflightErrors lifts this`)
    : { rule, severity: 'hard', message, lift: check };
}

function* cgroupFindings(node: NodeFacts, { minor }: Version): Iterable<Finding> {
  if (minor < SINCE.cgroupV1IsRefused) return;
  if (node.cgroup === 1 && node.allowsCgroupV1)
    yield warn('cgroup', `failCgroupV1: false allows cgroup v1; ${IGNORE}`);
  else if (node.cgroup === 1)
    yield {
      rule: 'cgroup',
      severity: 'hard',
      message: `the kubelet of 1.${minor} refuses cgroup v1`,
      lift: 'cgroup',
    };
  else if (typeof node.cgroup === 'string') {
    const found = `the version of cgroups cannot be read (${node.cgroup}), and 1.${minor} needs v2`;
    yield unlessIgnored('cgroup', node, 'SystemVerification', found);
  }
}

function* containerdFindings(node: NodeFacts, { minor }: Version): Iterable<Finding> {
  const { containerd } = node;
  if (containerd === undefined || minor < SINCE.containerd1IsWarnedOf) return;
  const runtime = versionOf(containerd);
  if (runtime && runtime.major > 1) return;
  const last = SINCE.containerd1IsRefused - 1;
  const found = runtime
    ? `containerd ${containerd} is too old for 1.${minor}`
    : `the version of containerd cannot be read (${containerd}), and 1.${minor} needs 2.0`;
  if (minor >= SINCE.containerd1IsRefused)
    yield unlessIgnored('containerd', node, 'ContainerRuntimeVersion', found);
  else if (runtime)
    yield warn('containerd', `containerd ${containerd}: 1.${last} is the last with containerd 1.x`);
  else yield warn('containerd', `the version of containerd cannot be read (${containerd})`);
}

function* kernelFindings(node: NodeFacts, { minor }: Version): Iterable<Finding> {
  const { kernel } = node;
  if (kernel === undefined || minor < SINCE.kernelIsRefused) return;
  const linux = versionOf(kernel);
  if (linux && (linux.major > 4 || (linux.major === 4 && linux.minor >= 19))) return;
  const needs = `1.${minor}, which needs 4.19`;
  const found = linux
    ? `Linux ${kernel} is too old for ${needs}`
    : `the version of Linux cannot be read (${kernel}): it may be too old for ${needs}`;
  if (minor >= SINCE.kernelIsWarnedOf) yield warn('kernel', found);
  else yield unlessIgnored('kernel', node, 'SystemVerification', found);
}

/** Accepts two numbers, too. */
function versionOf(text: string | undefined): Version | undefined {
  return parseVersion(text) ?? parseVersion(`${text}.0`);
}

/** What kubeadm brings from a minor version on (its `SupportedEtcdVersion`); the rules are about the way there. Newest first. */
const ETCDS = [
  // Source: etcd.io/docs/v3.7/upgrades/upgrade_3_7.
  { from: 37, version: '3.7.0', needed: 0, advised: 11 },
  // Before 3.5.20 a member may become a learner again in 3.6, before 3.5.26 removed ones may reappear.
  // Sources: etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue_followup and etcd.io/blog/2025/zombie_members_upgrade.
  { from: 34, version: '3.6.4', needed: 20, advised: 26 },
] as const;

/** Undefined if kubeadm runs no etcd, or brings no new minor version of it. */
export function etcdFacts(members: readonly string[], target: string): VersionFacts['etcd'] {
  const brought = ETCDS.find(({ from }) => (parseVersion(target)?.minor ?? 0) >= from);
  return members.length > 0 && brought ? { members, target: brought.version } : undefined;
}

export function etcdFindings(etcd: VersionFacts['etcd']): Finding[] {
  if (!etcd) return [];
  const target = parseVersion(etcd.target);
  const { needed = 0, advised = 0 } =
    ETCDS.find(({ version }) => parseVersion(version)?.minor === target?.minor) ?? {};
  return etcd.members.flatMap((member): Finding[] => {
    const now = parseVersion(member);
    const found = (severity: Finding['severity'], why: string): Finding[] => [
      { rule: 'etcd', severity, message: `etcd ${member} to ${etcd.target}: ${why}` },
    ];
    if (!now || !target) return found('force', 'a version cannot be read');
    if (target.minor - now.minor > 1) return found('hard', 'one minor version at a time');
    // kubeadm leaves a member alone that is newer than what it brings.
    if (target.minor <= now.minor || now.patch >= advised) return [];
    if (now.patch < needed)
      return found('hard', `every member must be at 3.${now.minor}.${needed} or later`);
    return found('warn', `3.${now.minor}.${advised} or later is advised`);
  });
}

export interface VersionFacts {
  /** Of every API server, as found; empty if only other rules are needed. */
  readonly apiServers: readonly string[];
  /** What the API servers shall have; absent to judge only the present state. */
  readonly target?: string;
  /** True if a rollout to this target has started: API servers may then differ. */
  readonly resuming?: boolean;
  /** The oldest maintained minor version of v1; not judged if absent. */
  readonly oldestMaintained?: number;
  readonly kubelets?: readonly KubeletFacts[];
  readonly controllers?: readonly ControllerManagerFacts[];
  readonly kubeadm?: KubeadmFacts;
  readonly etcd?: { readonly members: readonly string[]; readonly target: string } | undefined;
  readonly node?: NodeFacts;
}

export interface KubeletFacts {
  readonly name?: string;
  readonly version: string;
  /** What it shall have; absent if it stays. */
  readonly target?: string;
  /** Only DaemonSet and static pods run there. */
  readonly drained?: boolean;
  /** A worker that may skip minor versions. */
  readonly skips?: boolean;
  /** A new machine takes its place. */
  readonly replaced?: boolean;
  /** The only API server that it connects to; absent behind a load balancer. */
  readonly apiServer?: string;
}

/** kube-controller-manager, kube-scheduler or a cloud controller manager. */
export interface ControllerManagerFacts extends Pick<KubeletFacts, 'version' | 'apiServer'> {
  readonly name: string;
}

export interface KubeadmFacts {
  /** Of the binary that will run; absent if it is unreadable. */
  readonly version?: string;
  readonly verb: 'apply' | 'node';
  /** The version in ConfigMap kubeadm-config, from the last `upgrade apply`. */
  readonly cluster?: string;
  /** Version of the kubeadm that last managed this node. */
  readonly managedBy?: string;
}

/** Of one host: what a kubelet of the target's minor version depends on. A text that is no version is what was found instead. */
export interface NodeFacts {
  readonly cgroup?: 1 | 2 | string;
  /** By `failCgroupV1: false`, also after kubeadm has written the kubelet's configuration anew. */
  readonly allowsCgroupV1?: boolean;
  /** Absent where the kubelet uses another container runtime. */
  readonly containerd?: string;
  readonly kernel?: string;
  /** Checks of its preflight that kubeadm ignores on this host. */
  readonly ignores?: readonly string[];
}

/** The rule that a step of anything from version to version breaks, and the words about it, without their subject. */
export function brokenStep(
  from: Version,
  to: Version,
  texts = { from: textOf(from), to: textOf(to) },
): { readonly rule: 'Downgrade' | 'SkippedMinor'; readonly message: string } | undefined {
  const words = (way: string): string => `would go from ${texts.from} ${way} to ${texts.to}`;
  if (compareVersions(to, from) < 0) return { rule: 'Downgrade', message: words('down') };
  const past = to.major > from.major ? ['the rest of its major version'] : minorsBetween(from, to);
  return past.length > 0
    ? { rule: 'SkippedMinor', message: words(`past ${past.join(', ')}`) }
    : undefined;
}

export function textOf({ major, minor, patch, pre, build }: Version): string {
  return `v${major}.${minor}.${patch}${pre && `-${pre}`}${build && `+${build}`}`;
}
