/**
 * Examines three things: containers that an upgrade must not touch, the containerd that runs them, and the serving
 * certificates of the kubelets.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Node } from '../../../src/kube/resources.ts';
import { differing } from '../checks.ts';
import { CONTAINERD } from '../machines/containerd.ts';
import { until } from '../wait.ts';
import type { Cluster } from './cluster.ts';
import type { Operator } from './operator.ts';

interface Pod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly containerStatuses?: readonly {
      readonly containerID?: string;
      readonly restartCount: number;
      readonly state: { readonly running?: { readonly startedAt: string } };
    }[];
  };
}

interface NodeWithImages extends Node {
  readonly status: Node['status'] & {
    readonly images?: readonly { readonly names: readonly string[] }[];
  };
}

const LABELS = { app: 'lasting' };

/** Starts one pod on each machine. No drain evicts these pods, so only the container runtime could end them. */
export async function startLasting(operator: Operator, directory: string): Promise<void> {
  const { items } = await operator.get<{ items: NodeWithImages[] }>('nodes');
  const names = items.flatMap(({ status }) => status.images ?? []).flatMap((image) => image.names);
  const image = names.find((name) => /\/pause:/.test(name));
  const containers = [{ name: 'pause', image, imagePullPolicy: 'Never' }];
  const template = {
    metadata: { labels: LABELS },
    spec: { containers, tolerations: [{ operator: 'Exists' }] },
  };
  const metadata = { name: 'lasting', namespace: 'kube-system' };
  const spec = { selector: { matchLabels: LABELS }, template };
  const file = join(directory, 'lasting.json');
  await writeFile(
    file,
    JSON.stringify({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata, spec }),
  );
  await operator.administer('apply', '-f', file);
  await until('the lasting pods to run', 300, async () => {
    const found = Object.values(await lastingContainers(operator));
    return found.length === items.length && found.every((container) => container.includes('since'));
  });
}

/** By pod. */
export async function lastingContainers(operator: Operator): Promise<Record<string, string>> {
  const { items } = await operator.get<{ items: Pod[] }>('pods', '-l', `app=${LABELS.app}`);
  const entries = items.map(({ metadata, status }): [string, string] => {
    const [container] = status.containerStatuses ?? [];
    const since = container?.state.running ? ` since ${container.state.running.startedAt}` : '';
    return [
      metadata.name,
      `${container?.containerID}${since}, ${container?.restartCount} restarts`,
    ];
  });
  return Object.fromEntries(entries);
}

export function changed(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) =>
    before[name] === after[name] ? [] : [`${name}: ${before[name]} became ${after[name]}`],
  );
}

export async function runtimes({ machines }: Cluster, operator: Operator): Promise<string[]> {
  const { items } = await operator.get<{ items: Node[] }>('nodes');
  const reported = items.map(({ metadata, status }): [string, string | undefined] => [
    metadata.name,
    status?.nodeInfo?.containerRuntimeVersion,
  ]);
  const found: Record<string, string | undefined> = Object.fromEntries(reported);
  const wrong = differing(found, `containerd://${CONTAINERD.to.slice(1)}`);
  for (const machine of machines) {
    const installed = await machine.must('containerd --version');
    if (!installed.includes(` ${CONTAINERD.to} `))
      wrong.push(`${machine.name} has ${installed.trim()}`);
  }
  return wrong;
}

export async function servingCertificates({ machines }: Cluster): Promise<string[]> {
  const file = '/var/lib/kubelet/pki/kubelet-server-current.pem';
  const found = await Promise.all(
    machines.map(async (machine) => await machine.run(`test -s ${file}`)),
  );
  return machines.flatMap(({ name }, index) =>
    found[index]?.ok ? [] : [`${name} has no ${file}`],
  );
}
