/** Reads the process table: which process has a PID, which file it executes, and which one is the service. */
import { readFileSync } from 'node:fs';
import { readdir, readFile, readlink, realpath, stat } from 'node:fs/promises';
import { isSameProcess, type ProcessId } from './host.ts';

/** The process with this PID; undefined when there is none, or only a zombie. */
export function findProcess(pid: number): ProcessId | undefined {
  const text = kernelText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // proc_pid_stat(5): the name in parentheses may hold anything, so fields are counted from the last one: 3 is next.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, parent, ticks] = [fields[0] ?? 'X', fields[1], fields[19]];
  if ('ZX'.includes(state)) return undefined;
  return { pid, started: `${bootId()}/${ticks}`, parent: Number(parent) };
}

/** Milliseconds since the process started, by the system's uptime, which in a container may be the host's. */
export async function ageOf({ started }: ProcessId): Promise<number> {
  const uptime = await readFile('/proc/uptime', 'utf8').catch(() => '');
  const [seconds, ticks] = [uptime.split(' ')[0], started.split('/')[1]];
  // /proc shows ticks of 10 ms, whatever the kernel counts in.
  return 1000 * Number(seconds) - 10 * Number(ticks);
}

/** False also when one of them is from before the last boot. */
export function isOlder(process: Pick<ProcessId, 'started'>, than: Pick<ProcessId, 'started'>): boolean {
  const [[boot, ticks], [otherBoot, otherTicks]] = [process.started.split('/'), than.started.split('/')];
  return boot === otherBoot && Number(ticks) < Number(otherTicks);
}

/** Path of the file that a process executes, even if the file was replaced; undefined when unreadable. */
export async function executableOf(pid: number): Promise<string | undefined> {
  const path = await readlink(`/proc/${pid}/exe`).catch(() => undefined);
  return path?.replace(/ \(deleted\)$/, '');
}

/** True when the process executes the file that is at `path` now; for a script only the path is compared. */
export async function executes(pid: number, path: string): Promise<boolean> {
  const [running, file] = await Promise.all([identityOf(`/proc/${pid}/exe`), identityOf(path)]);
  return (running !== undefined && running === file) || (await scriptOf(pid)) === path;
}

/** Whatever file is there now. */
export async function wasStartedFrom(pid: number, path: string): Promise<boolean> {
  return (await executableOf(pid)) === path || (await scriptOf(pid)) === path;
}

export async function allPids(): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Program and arguments; empty for a process that is gone, and for a kernel thread. */
export async function argumentsOf(pid: number): Promise<string[]> {
  return await stringsIn(`/proc/${pid}/cmdline`);
}

/** A variable of the environment that the process was started with; undefined also when unreadable. */
export async function variableOf(pid: number, name: string): Promise<string | undefined> {
  const entry = (await stringsIn(`/proc/${pid}/environ`)).find((text) => text.startsWith(`${name}=`));
  return entry?.slice(name.length + 1);
}

export async function workingDirectoryOf(pid: number): Promise<string | undefined> {
  return await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
}

export async function ownerOf(pid: number): Promise<number | undefined> {
  return (await stat(`/proc/${pid}`).catch(() => undefined))?.uid;
}

/** From proc_pid_task_children(5); undefined when the kernel does not have it. */
export async function childrenOf(parent: number): Promise<number[] | undefined> {
  try {
    const threads = await readdir(`/proc/${parent}/task`);
    const lists = threads.map(async (thread) => await readFile(`/proc/${parent}/task/${thread}/children`, 'utf8'));
    return (await Promise.all(lists)).flatMap((list) => [...list.matchAll(/\d+/g)].map(Number));
  } catch {
    return undefined;
  }
}

/** The kernel runs `#!` files as `interpreter path arguments`. */
async function scriptOf(pid: number): Promise<string | undefined> {
  return (await argumentsOf(pid))[1];
}

/** Each one ends with a NUL. */
async function stringsIn(path: string): Promise<string[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.split('\0').slice(0, -1);
}

/** True for the file itself and for symbolic links to it. */
export async function leadsTo(path: string, file: string): Promise<boolean> {
  return path === file || (await realpath(path).catch(() => undefined)) === file;
}

/** Device and number of a file or directory; a link counts as its target. */
export async function identityOf(path: string): Promise<string | undefined> {
  const file = await stat(path, { bigint: true }).catch(() => undefined);
  return file === undefined ? undefined : `${file.dev}:${file.ino}`;
}

/** Start times count from the boot and could repeat without its id. */
export function bootId(): string {
  return kernelText('/proc/sys/kernel/random/boot_id').trim();
}

/** What the kernel alone answers, at once: a promise for each of a host's processes takes ten times as long. Empty: gone. */
export function kernelText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
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
