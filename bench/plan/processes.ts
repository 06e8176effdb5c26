/** What the kernel tells of processes: memory, and whether they are at rest. */
import { readFile } from 'node:fs/promises';
import { type Clock, sleep } from '../../src/util/clock.ts';

/** All in MiB. */
export interface Memory {
  readonly rss: number;
  /** The greatest `rss` that there ever was. */
  readonly peak: number;
  /** What no other process shares and no file backs: what one more process really costs a host. */
  readonly privateDirty: number;
}

/** Rejects where the process is gone. */
export async function memoryOf(pid: number): Promise<Memory> {
  const [status, rollup] = await Promise.all(
    ['status', 'smaps_rollup'].map(async (file) => await readFile(`/proc/${pid}/${file}`, 'utf8')),
  );
  return {
    rss: mebibytes(status, 'VmRSS'),
    peak: mebibytes(status, 'VmHWM'),
    privateDirty: mebibytes(rollup, 'Private_Dirty'),
  };
}

/** A line such as `VmRSS:     1024 kB`, where kB means KiB (proc(5)). */
export function mebibytes(text = '', field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN) / 1024;
}

/** A process at rest renews a lease and hears of its object every ten seconds, and no more. */
const REST = { windowMs: 2_000, mostTicks: 10 };

/** Resolves when none of the processes used more than 5 % of a core for two seconds; there is no other sign of rest. */
export async function untilAtRest(
  pids: readonly number[],
  clock: Clock,
  abort: AbortSignal,
): Promise<void> {
  let before = await ticksOf(pids);
  for (;;) {
    await sleep(clock, REST.windowMs, abort);
    const now = await ticksOf(pids);
    if (now.every((ticks, index) => ticks - (before[index] ?? 0) <= REST.mostTicks)) return;
    before = now;
  }
}

/** Hundredths of a second of CPU time (proc_pid_stat(5): fields 14 and 15, counted from behind the name). */
async function ticksOf(pids: readonly number[]): Promise<number[]> {
  return await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(fields[11]) + Number(fields[12]);
    }),
  );
}

/** CPU time that the process has used so far. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const [ticks = 0] = await ticksOf([pid]);
  return ticks / 100;
}
