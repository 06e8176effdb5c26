/** What a kubelet of a minor version requires of its host. */
import { parseVersion, type Version } from '../util/version.ts';
import { type Finding, Findings, type NodeFacts } from './version-facts.ts';

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
