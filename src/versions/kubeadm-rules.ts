/** The rules of kubeadm, of etcd, and of what a kubelet requires of its host. */
import { compareVersions, parseVersion, type Version } from '../util/version.ts';
import {
  brokenStep,
  type Finding,
  Findings,
  hard,
  type KubeadmFacts,
  type NodeFacts,
  type VersionFacts,
} from './version-facts.ts';

export function kubeadmFindings({ kubeadm, target }: VersionFacts): Finding[] {
  if (!kubeadm) return [];
  const own = parseVersion(kubeadm.version ?? '');
  const cluster = kubeadm.cluster === undefined ? undefined : parseVersion(kubeadm.cluster);
  if (!own) return [hard('Km1', 'the version of kubeadm cannot be read')];
  if (kubeadm.verb === 'join') return joinFindings(own, cluster);
  const to = parseVersion(target ?? kubeadm.version ?? '');
  if (!to || (kubeadm.verb === 'apply' && !cluster)) return [hard('Km1', 'the version of the cluster cannot be read')];
  return kubeadm.verb === 'apply' && cluster
    ? applyFindings(own, cluster, to)
    : upgradeNodeFindings(own, cluster, kubeadm);
}

function applyFindings(own: Version, cluster: Version, to: Version): Finding[] {
  // For a pre-release, kubeadm allows with --force what it refuses for a release.
  const findings = new Findings();
  const strict = to.pre === '' ? findings.hard : findings.force;
  if (to.minor < own.minor - 1) findings.hard('Km2', `kubeadm 1.${own.minor} goes no lower than 1.${own.minor - 1}.0`);
  const step = `the cluster ${brokenStep(cluster, to)?.message}`;
  if (to.minor > cluster.minor + 1) strict('Km3', step);
  if (to.minor < cluster.minor - 1) strict('Km4', step);
  else if (to.minor < cluster.minor) findings.hard('R12', step);
  if (own.minor < to.minor) strict('Km5', `kubeadm 1.${own.minor} cannot bring a cluster to 1.${to.minor}`);
  else if (own.minor > to.minor)
    findings.force('Ks2', `kubeadm 1.${own.minor} brings clusters to its own minor version, not to 1.${to.minor}`);
  else if (compareVersions(own, to) < 0 && to.pre === '')
    findings.force('Ks1', `kubeadm has an older patch than the target 1.${to.minor}.${to.patch}`);
  return findings.list;
}

function upgradeNodeFindings(own: Version, cluster: Version | undefined, { managedBy }: KubeadmFacts): Finding[] {
  const findings = new Findings();
  const before = managedBy === undefined ? undefined : parseVersion(managedBy);
  if (before && own.minor - before.minor > 1)
    findings.hard(
      'Kd',
      `the node was last managed by kubeadm 1.${before.minor}: 1.${own.minor} is more than one minor version on`,
    );
  if (cluster && own.minor < cluster.minor)
    findings.hard('Kd', `kubeadm 1.${own.minor} is older than the cluster at 1.${cluster.minor}`);
  if (cluster && own.minor > cluster.minor)
    findings.hard(
      'Kd',
      `the cluster is still recorded at 1.${cluster.minor}: \`kubeadm upgrade apply\` on the first control-plane host comes first`,
    );
  return findings.list;
}

function joinFindings(own: Version, cluster: Version | undefined): Finding[] {
  if (cluster && compareVersions(own, cluster) === 0) return [];
  return [hard('Kd', 'nodes join with the kubeadm that last upgraded the cluster')];
}

/** Removed kubelet flags, with the first minor version that refuses to start with them. */
const REMOVED_FLAGS: Readonly<Record<string, number>> = {
  'container-runtime': 27,
  'master-service-namespace': 27,
  'keep-terminated-pod-volumes': 31,
  'iptables-masquerade-bit': 31,
  'iptables-drop-bit': 31,
  'cloud-config': 34,
  'pod-infra-container-image': 35,
};

export function nodeFindings(node: NodeFacts | undefined, target: Version | undefined): Finding[] {
  if (!node || !target) return [];
  const { cgroup, containerd, kernel, kubeletFlags = [], kubeProxyMode } = node;
  const { minor } = target;
  const findings = new Findings();
  if (cgroup === 1 && minor >= 35) findings.hard('cgroup', `the kubelet of 1.${minor} refuses cgroup v1`);
  const runtime = versionOf(containerd);
  if (runtime?.major === 1 && minor >= 36)
    findings.hard('containerd', `containerd ${containerd} is too old for 1.${minor}`);
  if (runtime?.major === 1 && minor === 35) findings.warn('containerd', '1.35 is the last with containerd 1.x');
  const linux = versionOf(kernel);
  if (linux && minor >= 32 && (linux.major < 4 || (linux.major === 4 && linux.minor < 19)))
    findings.hard('kernel', `Linux ${kernel} is too old for 1.${minor}, which needs 4.19`);
  for (const flag of kubeletFlags) {
    const removed = REMOVED_FLAGS[flag];
    if (removed !== undefined && minor >= removed)
      findings.hard('kubelet-flag', `the kubelet of 1.${minor} does not know --${flag}`);
  }
  if (kubeProxyMode === 'ipvs' && minor >= 35) findings.warn('kube-proxy-mode', 'kube-proxy mode ipvs is deprecated');
  return findings.list;
}

/** Accepts two numbers, too. */
function versionOf(text: string | undefined): Version | undefined {
  return text === undefined ? undefined : (parseVersion(text) ?? parseVersion(`${text}.0`));
}

/** With an older patch, a member may become a learner again in 3.6. */
const MEMBERS_FOR_36 = 20;
/** With an older patch, removed members may reappear in 3.6. */
const ADVISED_FOR_36 = 26;

/** kubeadm 1.34 and later brings etcd 3.6; the rules are about the way there. */
const ETCD_36 = { from: 34, version: '3.6.4' } as const;

/** Undefined if kubeadm runs no etcd, or brings no new minor version of it. */
export function etcdFacts(members: readonly string[], target: string): VersionFacts['etcd'] {
  const minor = parseVersion(target)?.minor ?? 0;
  return members.length > 0 && minor >= ETCD_36.from ? { members, target: ETCD_36.version } : undefined;
}

export function etcdFindings(etcd: VersionFacts['etcd']): Finding[] {
  if (!etcd) return [];
  const target = parseVersion(etcd.target);
  return etcd.members.flatMap((member): Finding[] => {
    const now = parseVersion(member);
    const found = (severity: Finding['severity'], why: string): Finding[] => [
      { rule: 'etcd', severity, message: `etcd ${member} to ${etcd.target}: ${why}` },
    ];
    if (!now || !target) return found('hard', 'a version cannot be read');
    if (target.minor < now.minor) return found('hard', 'the storage format is not lowered');
    if (target.minor - now.minor > 1) return found('hard', 'one minor version at a time');
    if (target.minor !== 6 || now.minor !== 5 || now.patch >= ADVISED_FOR_36) return [];
    if (now.patch < MEMBERS_FOR_36) return found('hard', `every member must be at 3.5.${MEMBERS_FOR_36} or later`);
    return found('warn', `3.5.${ADVISED_FOR_36} or later is advised`);
  });
}
