/** Owns the plan as people see it before they agree: every host in order, its steps, and what was found. */
import { type Assessment, hostsOf, type Survey } from '../../dialects/kubeadm/preflight.ts';
import { table } from '../table.ts';

export function planLines({ manifest, hosts, nodes }: Survey, { request, resumes, findings }: Assessment): string[] {
  const versionOf = (name: string): string =>
    nodes.find(({ metadata }) => metadata.name === name)?.status?.nodeInfo?.kubeletVersion ?? 'unknown';
  const row = (name: string, role: string, verb: string): string[] => [
    name,
    role,
    `${versionOf(name)} → ${request.version}`,
    `kubeadm upgrade ${verb}`,
  ];
  const rows = [
    ...request.leader.map((name) => row(name, 'leader', `apply ${request.version}`)),
    ...request.followers.map((name) => row(name, 'follower', 'node')),
    ...request.workers.map((name) => row(name, 'worker', 'node')),
  ];
  const left = manifest.hosts.map(({ name }) => name).filter((name) => !hostsOf(request).includes(name));
  const repairs = hosts.flatMap(({ host, missing }) => missing.map((name) => `${host.name}: ${name}.yaml`));
  return [
    ...(resumes ? [`An upgrade to ${request.version} has begun: it goes on where it was left.`] : []),
    ...(rows.length > 0 ? [...table(['HOST', 'ROLE', 'VERSION', 'COMMAND'], rows), ''] : []),
    ...(left.length > 0 && !resumes ? [`Already at ${request.version}: ${left.join(', ')}`] : []),
    ...(repairs.length > 0 ? [`To be put back, since a kubeadm was cut off: ${repairs.join(', ')}`] : []),
    ...(rows.length > 0
      ? [
          `Control-plane hosts one at a time, then workers, ${request.concurrent} at a time. Each host: stage binaries, cordon, kubeadm,`,
          'kubelet, restart it, verify, uncordon what was cordoned here. Pods are not evicted: nodes are not drained yet.',
        ]
      : []),
    ...findings.map(
      ({ rule, severity, message }) => `${severity === 'warn' ? 'warning' : 'refused'} ${rule}: ${message}`,
    ),
  ];
}
