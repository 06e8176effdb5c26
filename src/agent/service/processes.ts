/** Reads the process table: which process has a PID, which file it executes, and which one is the service. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { ifPossible } from '../../util/errors.ts';
import { isSameProcess, type ProcessId } from './host.ts';

/** The process with this PID; undefined when there is none, or only a zombie. */
export function findProcess(pid: number): ProcessId | undefined {
  const text = kernelText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // proc_pid_stat(5): the name in parentheses may hold anything, so fields are counted from the last one: 3 is next.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0] ?? 'X';
  const parent = fields[1];
  const ticks = fields[19];
  if ('ZX'.includes(state)) return undefined;
  return { pid, started: `${bootId()}/${ticks}`, parent: Number(parent) };
}

/** Milliseconds since the process started, by the system's uptime, which in a container may be the host's. */
export async function ageOf({ started }: ProcessId): Promise<number> {
  const uptime = await readFile('/proc/uptime', 'utf8').catch(() => '');
  return ageAt({ started }, Number(uptime.split(' ')[0]));
}

/** The same at this uptime of the system, in seconds. */
export function ageAt({ started }: Pick<ProcessId, 'started'>, uptimeSeconds: number): number {
  const ticks = started.split('/')[1];
  // /proc shows ticks of 10 ms, whatever the kernel counts in.
  return 1000 * uptimeSeconds - 10 * Number(ticks);
}

/** False also when one of them is from before the last boot. */
export function isOlder(
  process: Pick<ProcessId, 'started'>,
  than: Pick<ProcessId, 'started'>,
): boolean {
  const [boot, ticks] = process.started.split('/');
  const [otherBoot, otherTicks] = than.started.split('/');
  return boot === otherBoot && Number(ticks) < Number(otherTicks);
}

/** Path of the file that a process executes, even if the file was replaced; undefined when unreadable. */
export function executableOf(pid: number): string | undefined {
  return linkOf(`/proc/${pid}/exe`)?.replace(/ \(deleted\)$/, '');
}

/** True when the process executes the file that is at `path` now; for a script only the path is compared. */
export function executes(pid: number, path: string): boolean {
  const running = identityOf(`/proc/${pid}/exe`);
  return (running !== undefined && running === identityOf(path)) || scriptOf(pid) === path;
}

/** Whatever file is there now. */
export function wasStartedFrom(pid: number, path: string): boolean {
  return executableOf(pid) === path || scriptOf(pid) === path;
}

export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Program and arguments; empty for a process that is gone, and for a kernel thread. Those of a foreign one may never end. */
export function argumentsOf(pid: number): string[] {
  return stringsIn(`/proc/${pid}/cmdline`);
}

/** A variable of the environment that the process was started with; undefined also when unreadable. */
export function variableOf(pid: number, name: string): string | undefined {
  const entry = stringsIn(`/proc/${pid}/environ`).find((text) => text.startsWith(`${name}=`));
  return entry?.slice(name.length + 1);
}

/** From proc_pid_task_children(5); undefined when the kernel does not have it. */
export function childrenOf(parent: number): number[] | undefined {
  return ifPossible(() =>
    readdirSync(`/proc/${parent}/task`)
      .map((thread) => readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8'))
      .flatMap((list) => [...list.matchAll(/\d+/g)].map(Number)),
  );
}

/** The kernel runs `#!` files as `interpreter path arguments`. */
function scriptOf(pid: number): string | undefined {
  return argumentsOf(pid)[1];
}

/** Each one ends with a NUL. */
function stringsIn(path: string): string[] {
  return kernelText(path).split('\0').slice(0, -1);
}

/** True if one of the paths is the file itself or a symbolic link to it. */
export async function leadTo(file: string, paths: Iterable<string>): Promise<boolean> {
  for (const path of paths)
    if (path === file || (await realpath(path).catch(() => undefined)) === file) return true;
  return false;
}

/** Device and number of a file or directory; a link counts as its target. */
export function identityOf(path: string): string | undefined {
  return ifPossible(() => {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  });
}

/** Start times count from the boot and could repeat without its id. */
export function bootId(): string {
  boot ??= kernelText('/proc/sys/kernel/random/boot_id').trim();
  return boot;
}

let boot: string | undefined;

/** What the kernel alone answers, at once: a promise for each of a host's processes takes ten times as long. Empty: gone. */
export function kernelText(path: string): string {
  return ifPossible(() => readFileSync(path, 'utf8')) ?? '';
}

export function linkOf(path: string): string | undefined {
  return ifPossible(() => readlinkSync(path));
}

/** Signals the process unless it is gone; a process that reuses its PID is left alone. */
export function endProcess(target: ProcessId, how: 'SIGTERM' | 'SIGKILL'): void {
  if (isSameProcess(findProcess(target.pid), target)) sendSignal(target.pid, how);
}

/** A process that is gone already is fine; a negative number is a process group. */
export function sendSignal(pid: number, how: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, how);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
