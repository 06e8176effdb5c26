/**
 * Watches the hosts from outside while Refit works. It observes which hosts are being changed, and which API servers
 * and members of etcd are away.
 */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { sleep, systemClock } from '../../../../src/util/clock.ts';
import type { Machine } from '../../machines/machine.ts';
import type { Cluster } from '../cluster.ts';

const PAUSE_MS = 500;
/** The port on which each component listens on every control plane. */
const PORTS = { 'API servers': 6443, 'members of etcd': 2379 } as const;

export interface Seen {
  /** The moments at which the work on a host began or ended, in order. */
  readonly events: readonly { readonly name: string; readonly what: 'began' | 'ended' }[];
  /** Each moment at which more than one API server, or more than one etcd member, refused connections. */
  readonly outages: readonly string[];
}

/**
 * Watches the cluster while `work` runs. The work on a host begins with the step Kubeadm, and ends when the step
 * Kubelet is done.
 */
export async function watched(
  { machines, controlPlanes }: Cluster,
  work: () => Promise<void>,
): Promise<Seen> {
  const events: { name: string; what: 'began' | 'ended' }[] = [];
  const outages: string[] = [];
  const before = new Map<Machine, Set<string>>();
  for (const machine of machines) before.set(machine, new Set(await journalOf(machine)));
  const add = (name: string, what: 'began' | 'ended'): void => {
    if (!events.some((each) => each.name === name && each.what === what))
      events.push({ name, what });
  };
  async function look(): Promise<void> {
    const began: string[] = [];
    const ended: string[] = [];
    for (const machine of machines) {
      const lines = (await journalOf(machine)).filter((line) => !before.get(machine)?.has(line));
      if (lines.some((line) => line.endsWith(' kubeadm begun'))) began.push(machine.name);
      if (lines.some((line) => line.endsWith(' kubelet done'))) ended.push(machine.name);
    }
    // Between two checks, the work on one host may end and then the work on the next host may begin, so ends are
    // recorded first. If the work on a host has ended since the last check, it may also have begun since then.
    for (const name of ended) {
      add(name, 'began');
      add(name, 'ended');
    }
    for (const name of began) add(name, 'began');
    for (const [kind, port] of Object.entries(PORTS)) {
      const refused = await Promise.all(
        controlPlanes.map(async ({ address }) => await refuses(address, port)),
      );
      const away = controlPlanes.filter((_, index) => refused[index]).map(({ name }) => name);
      if (away.length > 1) outages.push(`${kind} of ${away.join(', ')} were away at once`);
    }
  }
  const over = new AbortController();
  const working = work().finally(() => over.abort());
  while (!over.signal.aborted) {
    await look();
    await sleep(systemClock, PAUSE_MS);
  }
  await working;
  await look();
  return { events, outages };
}

/**
 * Returns what is wrong with the order of the return to the previous patch version. The workers must be first, then the
 * control planes one at a time. Of the control planes, the leader must be the first.
 */
export function wrongOrder(
  { controlPlanes, workers, machines }: Cluster,
  { events }: Seen,
): string[] {
  const told = events.map(({ name, what }) => `${name} ${what}`);
  const at = (name: string, what: string): number => told.indexOf(`${name} ${what}`);
  const idle = machines.filter(({ name }) => at(name, 'began') < 0 || at(name, 'ended') < 0);
  const names = controlPlanes.map(({ name }) => name);
  const lastWorker = Math.max(...workers.map(({ name }) => at(name, 'ended')));
  const ofControlPlanes = events.filter(({ name }) => names.includes(name));
  const overlapping = ofControlPlanes.filter(
    ({ name, what }, index) => what === 'ended' && ofControlPlanes[index - 1]?.name !== name,
  );
  const [first] = ofControlPlanes;
  return [
    ...idle.map(({ name }) => `${name} was not seen at work from its begin to its end`),
    ...(ofControlPlanes.some(({ name }) => at(name, 'began') < lastWorker)
      ? ['a control plane began before every worker had ended']
      : []),
    ...overlapping.map(({ name }) => `another control plane began while ${name} was at work`),
    ...(first?.name === names[0] ? [] : [`${first?.name} was the first control plane`]),
  ].map((wrong) => `${wrong} (${told.join(', ')})`);
}

/** The lines that the steps have written into the journal of a host. */
async function journalOf({ root }: Machine): Promise<string[]> {
  const text = await readFile(join(root, 'var/lib/refit/kubeadm.journal'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** Reports whether nothing listens at this port. A server that is only slow to answer does not count as absent. */
async function refuses(host: string, port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2000 });
    const end = (isRefused: boolean) => () => {
      socket.destroy();
      resolve(isRefused);
    };
    socket.on('connect', end(false));
    socket.on('timeout', end(false));
    socket.on('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED')());
  });
}
