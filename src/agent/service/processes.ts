/** Reads the process table: which process has a PID, which file it executes, and which process is older. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { ifPossible } from '../../util/errors.ts';
import { isSameProcess, type ProcessId } from './host.ts';

/** Returns the process with this PID; undefined if there is none, or only a zombie. */
export function findProcess(pid: number): ProcessId | undefined {
  const text = kernelText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The name in parentheses may contain any character, so fields are counted from the last parenthesis. The first field
  // after it is field 3 of proc_pid_stat(5).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0] ?? 'X';
  const parent = fields[1];
  const ticks = fields[19];
  if ('ZX'.includes(state)) return undefined;
  return { pid, started: `${bootId()}/${ticks}`, parent: Number(parent) };
}

/**
 * Returns the milliseconds since the process started. It uses the uptime of the system. In a container, this may be the
 * uptime of the host.
 */
export async function ageOf({ started }: ProcessId): Promise<number> {
  const uptime = await readFile('/proc/uptime', 'utf8').catch(() => '');
  return ageAt({ started }, Number(uptime.split(' ')[0]));
}

/** Returns the milliseconds since the process started, if the system's uptime is `uptimeSeconds`. */
export function ageAt({ started }: Pick<ProcessId, 'started'>, uptimeSeconds: number): number {
  const ticks = started.split('/')[1];
  // /proc counts in ticks of 10 ms, independent of the tick of the kernel.
  return 1000 * uptimeSeconds - 10 * Number(ticks);
}

/** Returns true if the process is older. Returns false if one of them is from before the last boot. */
export function isOlder(
  process: Pick<ProcessId, 'started'>,
  than: Pick<ProcessId, 'started'>,
): boolean {
  const [boot, ticks] = process.started.split('/');
  const [otherBoot, otherTicks] = than.started.split('/');
  return boot === otherBoot && Number(ticks) < Number(otherTicks);
}

/**
 * Returns the path of the file that a process executes, even if the file was replaced. Returns undefined if it cannot
 * be read.
 */
export function executableOf(pid: number): string | undefined {
  return linkOf(`/proc/${pid}/exe`)?.replace(/ \(deleted\)$/, '');
}

/** Returns true if the process executes the file that is at `path` now. For a script only the path is compared. */
export function executes(pid: number, path: string): boolean {
  const running = identityOf(`/proc/${pid}/exe`);
  return (running !== undefined && running === identityOf(path)) || scriptOf(pid) === path;
}

/** Returns true if the process was started from `path`. Another file may be at that path now. */
export function wasStartedFrom(pid: number, path: string): boolean {
  return executableOf(pid) === path || scriptOf(pid) === path;
}

/**
 * Returns the PIDs of all processes. Some of them may have ended by the time the caller uses them.
 */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/**
 * Returns the program and its arguments. They are empty for a process that has ended, and for a kernel thread. Do not
 * call this for an untrusted process: its arguments may never end.
 */
export function argumentsOf(pid: number): string[] {
  return stringsIn(`/proc/${pid}/cmdline`);
}

/**
 * Returns a variable of the environment with which the process was started. Returns undefined if the variable is not
 * set, or if the environment cannot be read.
 */
export function variableOf(pid: number, name: string): string | undefined {
  const entry = stringsIn(`/proc/${pid}/environ`).find((text) => text.startsWith(`${name}=`));
  return entry?.slice(name.length + 1);
}

/**
 * Returns the PIDs of the child processes, read as in proc_pid_task_children(5); undefined if the kernel does not
 * support that.
 */
export function childrenOf(parent: number): number[] | undefined {
  return ifPossible(() =>
    readdirSync(`/proc/${parent}/task`)
      .map((thread) => readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8'))
      .flatMap((list) => [...list.matchAll(/\d+/g)].map(Number)),
  );
}

/** Returns the script that a process executes. The kernel runs `#!` files as `interpreter path arguments`. */
function scriptOf(pid: number): string | undefined {
  return argumentsOf(pid)[1];
}

/** Returns the strings of a file in which each string ends with a NUL. */
function stringsIn(path: string): string[] {
  return kernelText(path).split('\0').slice(0, -1);
}

/** Returns true if one of the paths is the file itself or a symbolic link to it. */
export async function leadTo(file: string, paths: Iterable<string>): Promise<boolean> {
  for (const path of paths)
    if (path === file || (await realpath(path).catch(() => undefined)) === file) return true;
  return false;
}

/** Returns the device and the inode number of a file or directory. A link counts as its target. */
export function identityOf(path: string): string | undefined {
  return ifPossible(() => {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  });
}

/**
 * Returns the id of this boot. Start times are counted from the boot, so the same start time can occur again after
 * another boot.
 */
export function bootId(): string {
  boot ??= kernelText('/proc/sys/kernel/random/boot_id').trim();
  return boot;
}

let boot: string | undefined;

/**
 * Returns the text of a file that the kernel provides without delay; empty if the file does not exist any more. The
 * read is synchronous, because a promise for each process of the host takes ten times as long.
 */
export function kernelText(path: string): string {
  return ifPossible(() => readFileSync(path, 'utf8')) ?? '';
}

/** Returns the target of a symbolic link; undefined if it cannot be read. */
export function linkOf(path: string): string | undefined {
  return ifPossible(() => readlinkSync(path));
}

/** Signals the process unless it has ended. A process that reuses its PID is not signalled. */
export function endProcess(target: ProcessId, how: 'SIGTERM' | 'SIGKILL'): void {
  // Guard kill-same. Another process may have the PID now.
  if (isSameProcess(findProcess(target.pid), target)) sendSignal(target.pid, how);
}

/** Sends a signal. It does not matter if the process has ended already. A negative number is a process group. */
export function sendSignal(pid: number, how: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, how);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
