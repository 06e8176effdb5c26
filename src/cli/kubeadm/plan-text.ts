/** The plan that people confirm: every host in order, its steps, and what was found. */
import type { Request } from '../../dialects/kubeadm/plan-object.ts';
import { type Assessment, describeRefused, hostsOf, type Survey } from '../../dialects/kubeadm/preflight.ts';
import type { HostFacts } from '../../dialects/kubeadm/probe.ts';
import { table } from '../table.ts';

export function planLines(survey: Survey, { request, resumes, findings }: Assessment): string[] {
  const { manifest, nodes } = survey;
  const versionOf = (name: string): string =>
    nodes.find(({ metadata }) => metadata.name === name)?.status?.nodeInfo?.kubeletVersion ?? 'unknown';
  const row = (name: string, role: string, command: string): string[] => [
    name,
    role,
    `${versionOf(name)} → ${request.version}`,
    command,
  ];
  const rows = [
    ...request.leader.map((name) => row(name, 'leader', `kubeadm upgrade apply ${request.version}`)),
    ...request.followers.map((name) => row(name, 'follower', 'kubeadm upgrade node')),
    ...request.kubelets.map((name) => row(name, 'control plane', 'kubelet, once every API server has the version')),
    ...request.workers.map((name) => row(name, 'worker', 'kubeadm upgrade node')),
  ];
  const left = manifest.hosts.map(({ name }) => name).filter((name) => !hostsOf(request).includes(name));
  return [
    ...(resumes ? [`An upgrade to ${request.version} has begun: it continues where it stopped.`] : []),
    ...(rows.length > 0 ? [...table(['HOST', 'ROLE', 'VERSION', 'COMMAND'], rows), ''] : []),
    ...(left.length > 0 && !resumes ? [`Already at ${request.version}: ${left.join(', ')}`] : []),
    ...(rows.length > 0 ? procedureLines(survey, request) : []),
    ...findings.map(
      ({ rule, severity, message }) => `${severity === 'warn' ? 'warning' : 'refused'} ${rule}: ${message}`,
    ),
  ];
}

/** Shown before the API server is asked, since it may be the one that is missing. */
export function repairLines(hosts: readonly HostFacts[]): string[] {
  return hosts.flatMap(({ host, missing }) =>
    missing.map(({ name, backup, detail }) => {
      if (backup === 'refused') return `${host.name}: ${describeRefused(name, detail)}`;
      const who = backup === 'run' ? 'an interrupted kubeadm' : 'a kubeadm that Refit did not start';
      return `${host.name}: ${who} removed ${name}.yaml; to restore: ${detail}`;
    }),
  );
}

function procedureLines({ policy }: Survey, { concurrent }: Request): string[] {
  const { name, drain } = policy;
  const order = `Control-plane hosts one at a time, then workers, ${concurrent} at a time.`;
  if (!drain.enabled)
    return [
      `${order} Each host: stage binaries, kubeadm, kubelet, restart it, verify.`,
      `Pods stay where they are: UpgradePolicy ${name} says that nodes are neither cordoned nor drained.`,
    ];
  return [
    `${order} Each host: stage binaries, cordon, evict its pods, kubeadm, kubelet,`,
    'restart it, verify, uncordon what was cordoned here.',
  ];
}
