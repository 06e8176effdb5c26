/** Finds the k0s services on this host in the process table, with the places that their command lines name. */
import { resolve } from 'node:path';
import { defined } from '../../util/json.ts';
import type { ProcessId } from './host.ts';
import * as processes from './processes.ts';
import { usersOf, whyForeign } from './trusted-process.ts';

export interface ServicePlace {
  /** Absolute, as are all paths here. */
  readonly statusSocket: string;
  readonly dataDirectory: string;
  readonly hostnameOverride?: string;
  /** AUTOPILOT_HOSTNAME of the service. */
  readonly hostname?: string;
}

export interface FoundService extends ServicePlace {
  readonly pid: number;
}

/** The default of k0s run by root. */
export const DEFAULT_PLACE = {
  statusSocket: '/run/k0s/status.sock',
  dataDirectory: '/var/lib/k0s',
} as const;

/** Every trusted process, none older than `than`, whose command line looks like k0s; only its status socket proves it. */
export function findServices(than?: ProcessId): FoundService[] {
  // A process that has ended meanwhile passes; it has no command line any more.
  const isOldEnough = (pid: number): boolean =>
    than === undefined || !processes.isOlder(processes.findProcess(pid) ?? than, than);
  const pids = processes.allPids().filter(isOldEnough);
  return pids.flatMap((pid) => describeProcess(pid) ?? []);
}

/** The arguments come last: reading those of a foreign process may take gigabytes, or never end. */
function describeProcess(pid: number): FoundService | undefined {
  const args =
    whyForeign(pid) === undefined ? readServiceArguments(processes.argumentsOf(pid)) : undefined;
  if (args === undefined) return undefined;
  const directory = processes.linkOf(`/proc/${pid}/cwd`) ?? '/';
  const dataDirectory = resolve(directory, args.dataDirectory ?? DEFAULT_PLACE.dataDirectory);
  const isRoot = usersOf(pid)?.[1] === 0;
  const usualSocket = isRoot
    ? DEFAULT_PLACE.statusSocket
    : resolve(dataDirectory, 'run', 'status.sock');
  const hostname = processes.variableOf(pid, 'AUTOPILOT_HOSTNAME') || undefined;
  const statusSocket = resolve(directory, args.statusSocket ?? usualSocket);
  return defined({
    pid,
    statusSocket,
    dataDirectory,
    hostnameOverride: args.hostnameOverride,
    hostname,
  });
}

/** `original`, or a later child of its parent, that was started from `path`, whatever file is there now. */
export function findService(path: string, original: Omit<ProcessId, 'pid'>): ProcessId | undefined {
  const { parent } = original;
  for (const pid of processes.childrenOf(parent) ?? processes.allPids()) {
    const process = processes.findProcess(pid);
    if (process?.parent !== parent || processes.isOlder(process, original)) continue;
    // Anybody's orphan is a child of PID 1, and chooses its arguments. So is the `k0s api` of a k0s that was killed.
    if (whyForeign(pid) !== undefined || !processes.wasStartedFrom(pid, path)) continue;
    if (processes.argumentsOf(pid).some(isRole)) return process;
  }
  return undefined;
}

/** k0s takes `server` for `controller`. */
const isRole = (word = ''): boolean => ['controller', 'server', 'worker'].includes(word);

/** Undefined where this is no `<program> controller|server|worker …`, run directly or as a script by its interpreter. */
export function readServiceArguments(argv: readonly string[]) {
  const at = [1, 2].find((index) => isRole(argv[index]));
  if (at === undefined) return undefined;
  const rest = argv.slice(at + 1);
  const kubeletArguments = wordsIn(valueOf(rest, ['--kubelet-extra-args']) ?? '');
  const disabled = valuesOf(rest, ['--disable-components']).flatMap((list) => list.split(','));
  return defined({
    isController: argv[at] !== 'worker',
    /** Components that are switched off. */
    disabled: disabled.length > 0 ? disabled : undefined,
    /** As given: both may be relative to the process's working directory. */
    statusSocket: valueOf(rest, ['--status-socket']),
    dataDirectory: valueOf(rest, ['--data-dir', '-d']),
    /** Worker profile. */
    profile: valueOf(rest, ['--profile']),
    /** Name that the kubelet was told to register under. */
    hostnameOverride: valueOf(kubeletArguments, ['--hostname-override']),
  });
}

/** Splits the value of one flag into arguments, and removes their quotes. */
function wordsIn(text: string): string[] {
  const quoted = [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)];
  return quoted.map(([word]) => word.replaceAll(/["']/g, ''));
}

/** The last one wins; an empty value is none. */
export function valueOf(argv: readonly string[], names: readonly string[]): string | undefined {
  return valuesOf(argv, names).at(-1) || undefined;
}

/** In either form: `--flag value` and `--flag=value`. */
function valuesOf(argv: readonly string[], names: readonly string[]): string[] {
  return argv.flatMap((word, index) => {
    const name = names.find((candidate) => word === candidate || word.startsWith(`${candidate}=`));
    if (name === undefined) return [];
    return [word === name ? (argv[index + 1] ?? '') : word.slice(name.length + 1)];
  });
}
