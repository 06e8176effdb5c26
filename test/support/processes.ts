/** Reads what the kernel reports about processes: their memory, and whether they are idle. */
import { readFile } from 'node:fs/promises';
import { type Clock, sleep } from '../../src/util/clock.ts';

/** The memory of a process. All values are in MiB. */
export interface Memory {
  readonly rss: number;
  /** The largest value of `rss` since the start of the process. */
  readonly peak: number;
  /** The memory that no other process shares and that has no file. This is what each additional process costs a host. */
  readonly privateDirty: number;
}

/** Reads the memory of a process. Rejects if the process has ended. */
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

/** Returns the MiB in a line such as `VmRSS: 1024 kB`. In this line, kB means KiB (proc(5)). */
export function mebibytes(text = '', field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN) / 1024;
}

/**
 * The limit for an idle process. Every ten seconds, an idle process renews a Lease and receives an event of its object.
 * It does nothing else.
 */
const REST = { windowMs: 2_000, mostTicks: 10 };

/**
 * Resolves when none of the processes has used more than 5 % of a core for two seconds. Nothing else shows that a
 * process is idle.
 */
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

/**
 * Returns the hundredths of a second of CPU time (proc_pid_stat(5): fields 14 and 15). The code counts the fields from
 * the end of the name.
 */
async function ticksOf(pids: readonly number[]): Promise<number[]> {
  return await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(fields[11]) + Number(fields[12]);
    }),
  );
}

/** Returns the seconds of CPU time that the process has used so far. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const [ticks = 0] = await ticksOf([pid]);
  return ticks / 100;
}
