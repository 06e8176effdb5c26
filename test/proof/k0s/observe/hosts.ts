/** Looks at the hosts all the time, from outside: which k0s runs, and whether a host has a binary that could run. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sleep, systemClock } from '../../../../src/util/clock.ts';
import type { Machine } from '../../machines/machine.ts';
import type { Cluster } from '../cluster/cluster.ts';

const EVERY_MS = 100;

export interface Watched extends AsyncDisposable {
  /** What was against the rules of every upgrade, each sentence once. */
  readonly violations: readonly string[];
  /** How often the binary of each machine was replaced. */
  readonly swaps: Readonly<Record<string, number>>;
}

/**
 * Watches that never two controllers are down at once, that never more than `concurrent` workers are down, and that no
 * host is without a binary. A machine that is switched off does not count.
 */
export function watchHosts(cluster: Cluster, concurrent: number): Watched {
  const ended = new AbortController();
  const violations = new Set<string>();
  const swaps: Record<string, number> = {};
  const inodes = new Map<string, number>();
  const look = (): void => {
    const down = cluster.machines
      .filter((machine) => machine.isOn && !isUp(machine))
      .map(({ name }) => name);
    const controllers = down.filter((name) => name.startsWith('c'));
    const workers = down.filter((name) => name.startsWith('w'));
    if (controllers.length > 1)
      violations.add(`k0s was down on ${controllers.join(' and ')} at once`);
    if (workers.length > concurrent)
      violations.add(`k0s was down on ${workers.join(' and ')} at once`);
    for (const machine of cluster.machines.filter(({ isOn }) => isOn)) {
      const { name } = machine;
      const file = join(machine.live, 'usr/local/bin/k0s');
      if (!existsSync(file)) {
        violations.add(`${name} had no binary of k0s`);
        continue;
      }
      const { ino, size } = statSync(file);
      if (size === 0) violations.add(`${name} had an empty binary of k0s`);
      const before = inodes.get(name);
      if (before !== undefined && before !== ino) swaps[name] = (swaps[name] ?? 0) + 1;
      inodes.set(name, ino);
    }
  };
  const loop = (async () => {
    while (!ended.signal.aborted) {
      look();
      await sleep(systemClock, EVERY_MS, ended.signal).catch(() => undefined);
    }
  })();
  return {
    get violations() {
      return [...violations];
    },
    swaps,
    [Symbol.asyncDispose]: async () => {
      ended.abort();
      await loop;
    },
  };
}

/** Returns true if the service of k0s runs. The machine's supervisor keeps its process number as long as it runs. */
function isUp({ live }: Machine): boolean {
  try {
    const pid = readFileSync(join(live, 'run/services/k0s.pid'), 'utf8').trim();
    return existsSync(join(live, 'proc', pid));
  } catch {
    return false;
  }
}
