/** The rules of kubeadm itself: which kubeadm may upgrade a cluster or a node between which versions. */
import { compareVersions, parseVersion, type Version } from '../util/version.ts';
import { type Finding, Findings, hard, type KubeadmFacts, type VersionFacts } from './version-facts.ts';

export function kubeadmFindings({ kubeadm, target }: VersionFacts): Finding[] {
  if (!kubeadm) return [];
  const own = parseVersion(kubeadm.version ?? '');
  const cluster = kubeadm.cluster === undefined ? undefined : parseVersion(kubeadm.cluster);
  if (!own) return [hard('Km1', 'the version of kubeadm cannot be read')];
  if (kubeadm.verb === 'join') return joinFindings(own, cluster);
  const to = parseVersion(target ?? kubeadm.version ?? '');
  if (!to || (kubeadm.verb === 'apply' && !cluster)) return [hard('Km1', 'the version of the cluster cannot be read')];
  return kubeadm.verb === 'apply' && cluster ? applyFindings(own, cluster, to) : nodeFindings(own, cluster, kubeadm);
}

function applyFindings(own: Version, cluster: Version, to: Version): Finding[] {
  // For a pre-release, kubeadm allows with --force what it refuses for a release.
  const findings = new Findings();
  const strict = to.pre === '' ? findings.hard : findings.force;
  if (to.minor < own.minor - 1) findings.hard('Km2', `kubeadm 1.${own.minor} goes no lower than 1.${own.minor - 1}.0`);
  if (to.minor > cluster.minor + 1) strict('Km3', `the cluster at 1.${cluster.minor} cannot skip to 1.${to.minor}`);
  if (to.minor < cluster.minor - 1) strict('Km4', `the cluster at 1.${cluster.minor} cannot go back to 1.${to.minor}`);
  else if (to.minor < cluster.minor)
    findings.hard('R12', `minor versions are not lowered: 1.${cluster.minor} to 1.${to.minor}`);
  if (own.minor < to.minor) strict('Km5', `kubeadm 1.${own.minor} cannot bring a cluster to 1.${to.minor}`);
  else if (own.minor > to.minor)
    findings.force('Ks2', `kubeadm 1.${own.minor} brings clusters to its own minor version, not to 1.${to.minor}`);
  else if (compareVersions(own, to) < 0 && to.pre === '')
    findings.force('Ks1', `kubeadm has an older patch than the target 1.${to.minor}.${to.patch}`);
  return findings.list;
}

function nodeFindings(own: Version, cluster: Version | undefined, { managedBy }: KubeadmFacts): Finding[] {
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
