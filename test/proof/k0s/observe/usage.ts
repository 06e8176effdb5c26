/** What Refit uses and keeps: memory and open files of its processes, objects, annotations and files. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { nodes } from '../../../../src/kube/resources.ts';
import { controlNodes } from '../../../../src/signal/names.ts';
import type { Cluster } from '../cluster/cluster.ts';

/** One process of Refit, such as `refit-agent on w1`. */
export interface ProcessUsage {
  readonly name: string;
  readonly pid: string;
  readonly residentKiB: number;
  /** Open files, pipes and watches of the kernel. */
  readonly openFiles: number;
  /** Open connections. Connections are kept for the next requests, so their number goes up and down. */
  readonly sockets: number;
}

export function processesOf(cluster: Cluster): ProcessUsage[] {
  return cluster.machines.flatMap(({ name, live }) =>
    ['refit-controller', 'refit-agent'].flatMap((service) => {
      try {
        const pid = readFileSync(join(live, 'run/services', `${service}.pid`), 'utf8').trim();
        const status = readFileSync(join(live, 'proc', pid, 'status'), 'utf8');
        const [, resident = '0'] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
        const open = openIn(join(live, 'proc', pid, 'fd'));
        return [{ name: `${service} on ${name}`, pid, residentKiB: Number(resident), ...open }];
      } catch {
        // The process does not run just now.
        return [];
      }
    }),
  );
}

/** Counts what a process has open, by the links in its folder below /proc. */
function openIn(folder: string): Pick<ProcessUsage, 'openFiles' | 'sockets'> {
  const targets = readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      // It was closed in this moment.
      return [];
    }
  });
  const sockets = targets.filter((target) => target.startsWith('socket:')).length;
  return { openFiles: targets.length - sockets, sockets };
}

/** Resolves with what is kept, by its name. The numbers must not grow from one upgrade to the next. */
export async function keptIn(cluster: Cluster): Promise<Readonly<Record<string, number>>> {
  const kept: Record<string, number> = {};
  for (const resource of [nodes, controlNodes]) {
    const { items } = await cluster.client.list(resource);
    for (const { metadata } of items) {
      kept[`annotations of ${resource.kind} ${metadata.name}`] = Object.keys(
        metadata.annotations ?? {},
      ).length;
      kept[`labels of ${resource.kind} ${metadata.name}`] = Object.keys(
        metadata.labels ?? {},
      ).length;
    }
  }
  for (const kind of [
    'noderollouts',
    'upgradepolicies',
    'plans.autopilot.k0sproject.io',
    'leases',
    'jobs',
    'pods',
    'configmaps',
  ]) {
    const { stdout } = await cluster.kubectl('get', kind, '--all-namespaces', '-o', 'name');
    kept[`objects: ${kind}`] = stdout.split('\n').filter(Boolean).length;
  }
  for (const { name, root, live } of cluster.machines) {
    for (const [folder, at] of [
      ['/var/lib/refit', join(root, 'var/lib/refit')],
      ['/usr/local/bin', join(live, 'usr/local/bin')],
      ['/run/refit', join(live, 'run/refit')],
    ] as const)
      kept[`files of ${name} below ${folder}`] = (
        await readdir(at, { recursive: true }).catch(() => [])
      ).length;
  }
  return kept;
}
