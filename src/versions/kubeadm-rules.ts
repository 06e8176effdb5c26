/**
 * Defines the facts that the version rules judge, and the rules of kubeadm, of etcd, and of what a
 * kubelet requires of its host.
 */

import { compareVersions, minorsBetween, parseVersion, type Version } from '../util/version.ts';
import { ETCD_STEPS, HOST_REQUIREMENTS } from './data/by-hand.ts';
import { nearestFactsOf } from './facts.ts';
import { type Finding, force, hard, type RuleName, warn } from './findings.ts';

/** Returns what breaks the rules of kubeadm. Without facts about kubeadm there are no findings. */
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
  // If the version is a pre-release, `--force` allows what kubeadm always refuses for a release.
  const strict = to.pre === '' ? hard : force;
  if (to.minor < own.minor - 1)
    yield hard('Km2', `kubeadm 1.${own.minor} cannot install versions before 1.${own.minor - 1}.0`);
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
      `the node was last managed by kubeadm 1.${before.minor}: 1.${own.minor} is more than one minor version newer`,
    );
  if (!cluster) return;
  if (own.minor < cluster.minor)
    yield hard('Kd', `kubeadm 1.${own.minor} is older than the cluster at 1.${cluster.minor}`);
  const first = `the cluster is still recorded at 1.${cluster.minor}: \`kubeadm upgrade apply\` must first run on the first control-plane host`;
  if (own.minor > cluster.minor) yield hard('Kd', first);
}

const IGNORE = 'kubeadm needs ignorePreflightErrors: [SystemVerification]';

export function* nodeFindings(
  node: NodeFacts | undefined,
  target: Version | undefined,
): Iterable<Finding> {
  if (!node || !target) return;
  yield* cgroupFindings(node, target);
  yield* containerdFindings(node, target);
  yield* kernelFindings(node, target);
}

/**
 * Returns the finding of a rule for which kubeadm has the preflight check `check`: a refusal, or a warning if kubeadm ignores that check on
 * the host.
 */
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
    ? warn(rule, `${message}; ignorePreflightErrors allows this`)
    : { rule, severity: 'hard', message, lift: check };
}

function* cgroupFindings(node: NodeFacts, { minor }: Version): Iterable<Finding> {
  if (minor < HOST_REQUIREMENTS.cgroupV1IsRefused) return;
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
  if (containerd === undefined || minor < HOST_REQUIREMENTS.containerd1IsWarnedOf) return;
  const runtime = versionOf(containerd);
  if (runtime && runtime.major > 1) return;
  const last = HOST_REQUIREMENTS.containerd1IsRefused - 1;
  const found = runtime
    ? `containerd ${containerd} is too old for 1.${minor}`
    : `the version of containerd cannot be read (${containerd}), and 1.${minor} needs 2.0`;
  if (minor >= HOST_REQUIREMENTS.containerd1IsRefused)
    yield unlessIgnored('containerd', node, 'ContainerRuntimeVersion', found);
  else if (runtime)
    yield warn('containerd', `containerd ${containerd}: 1.${last} is the last with containerd 1.x`);
  else yield warn('containerd', `the version of containerd cannot be read (${containerd})`);
}

/** Judges the kernel as kubeadm does, by the expressions in its sources. */
function* kernelFindings(node: NodeFacts, { minor }: Version): Iterable<Finding> {
  const { kernel } = node;
  const facts = nearestFactsOf(`v1.${minor}.0`);
  if (kernel === undefined || facts === undefined) return;
  const linux = versionOf(kernel);
  const release = `${linux?.major}.${linux?.minor}.${linux?.patch}`;
  if (linux && facts.supportsKernel(release)) return;
  const found = linux
    ? `Linux ${kernel} is not among the kernels that kubeadm 1.${minor} supports`
    : `the version of Linux cannot be read (${kernel}): it may not be among the kernels that kubeadm 1.${minor} supports`;
  if (minor >= HOST_REQUIREMENTS.kernelIsWarnedOf) yield warn('kernel', found);
  else yield unlessIgnored('kernel', node, 'SystemVerification', found);
}

/** Returns the version of a text that has two or three numbers. */
function versionOf(text: string | undefined): Version | undefined {
  return parseVersion(text) ?? parseVersion(`${text}.0`);
}

/**
 * Returns the facts about etcd; undefined if kubeadm runs no etcd, or no kubeadm of the target's minor version is known.
 * The patch of etcd differs between the patches of kubeadm, so only its minor version counts.
 */
export function etcdFacts(members: readonly string[], target: string): VersionFacts['etcd'] {
  const brought = parseVersion(nearestFactsOf(target)?.etcd);
  return members.length > 0 && brought
    ? { members, target: `${brought.major}.${brought.minor}` }
    : undefined;
}

/** Returns what breaks the rules for upgrades of etcd members. */
export function etcdFindings(etcd: VersionFacts['etcd']): Finding[] {
  if (!etcd) return [];
  const target = versionOf(etcd.target);
  const { needed = 0, advised = 0 } = ETCD_STEPS.find(({ to }) => to === target?.minor) ?? {};
  return etcd.members.flatMap((member): Finding[] => {
    const now = parseVersion(member);
    const found = (severity: Finding['severity'], why: string): Finding[] => [
      {
        rule: 'etcd',
        severity,
        message: `upgrade of etcd from ${member} to ${etcd.target}: ${why}`,
      },
    ];
    if (!now || !target) return found('force', 'a version cannot be read');
    if (target.minor - now.minor > 1) return found('hard', 'upgrade one minor version at a time');
    // kubeadm does not change a member that is newer than the version it installs.
    if (target.minor <= now.minor || now.patch >= advised) return [];
    if (now.patch < needed)
      return found('hard', `every member must be at 3.${now.minor}.${needed} or later`);
    return found('warn', `3.${now.minor}.${advised} or later is advised`);
  });
}

export interface VersionFacts {
  /**
   * The versions of all API servers, as found. The list is empty if only other rules are needed.
   */
  readonly apiServers: readonly string[];
  /**
   * The version that the API servers are to get. If it is absent, only the present state is judged.
   */
  readonly target?: string;
  /** True if a rollout to this target has started. API servers may then differ. */
  readonly resuming?: boolean;
  /** True if a record proves that the API servers ran this target before, so they may go back to it within their minor version. */
  readonly goesBack?: boolean;
  /** The oldest maintained minor version of v1. If it is absent, the age of the target is not judged. */
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
  /** The version that the kubelet is to get. It is absent if the kubelet stays. */
  readonly target?: string;
  /** True if only DaemonSet pods and static pods run on the node. */
  readonly drained?: boolean;
  /** True for a worker that may skip minor versions. */
  readonly skips?: boolean;
  /**
   * True if a record proves that the kubelet ran this target before. The kubelet then goes back before the API servers
   * go back.
   */
  readonly goesBack?: boolean;
  /** True if a new machine replaces the node. */
  readonly replaced?: boolean;
  /** The only API server to which the kubelet connects. It is absent if the kubelet connects to a load balancer. */
  readonly apiServer?: string;
}

/** A kube-controller-manager, kube-scheduler or cloud controller manager. */
export interface ControllerManagerFacts extends Pick<KubeletFacts, 'version' | 'apiServer'> {
  readonly name: string;
}

export interface KubeadmFacts {
  /** The version of the binary that will run. It is absent if it cannot be read. */
  readonly version?: string;
  readonly verb: 'apply' | 'node';
  /** The version in ConfigMap kubeadm-config, from the last `upgrade apply`. */
  readonly cluster?: string;
  /** The version of the kubeadm that last managed this node. */
  readonly managedBy?: string;
}

/**
 * The properties of one host that a kubelet of the target's minor version needs. If a property could not be read as a
 * version, the text says what was found.
 */
export interface NodeFacts {
  readonly cgroup?: 1 | 2 | string;
  /**
   * True if `failCgroupV1: false` is set, and stays set when kubeadm writes the configuration of
   * the kubelet again.
   */
  readonly allowsCgroupV1?: boolean;
  /** The version of containerd. It is absent if the kubelet uses another container runtime. */
  readonly containerd?: string;
  readonly kernel?: string;
  /** The preflight checks that kubeadm ignores on this host. */
  readonly ignores?: readonly string[];
}

/**
 * Returns the rule that a step between two versions breaks, and a sentence about it without its
 * subject; undefined if no rule is broken.
 */
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
