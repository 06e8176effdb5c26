/** Finds the k0s services of this host in the process table, with the paths that their command lines name. */
import { resolve } from 'node:path';
import { defined } from '../../util/json.ts';
import type { ProcessId } from './host.ts';
import * as processes from './processes.ts';
import { usersOf, whyForeign } from './trusted-process.ts';

export interface ServicePlace {
  /** The path of the status socket. It is absolute, as are all paths here. */
  readonly statusSocket: string;
  readonly dataDirectory: string;
  readonly hostnameOverride?: string;
  /** The environment variable AUTOPILOT_HOSTNAME of the service. */
  readonly hostname?: string;
}

export interface FoundService extends ServicePlace {
  readonly pid: number;
}

/** The paths that k0s uses by default if root runs it. */
export const DEFAULT_PLACE = {
  statusSocket: '/run/k0s/status.sock',
  dataDirectory: '/var/lib/k0s',
} as const;

/**
 * Returns every trusted process whose command line looks like k0s. Only an answer on its status socket proves that it
 * is k0s. If `than` is given, older processes than `than` are left out.
 */
export function findServices(than?: ProcessId): FoundService[] {
  // A process that has ended in the meantime passes this check. It is left out later, because it has no command line
  // any more.
  const isOldEnough = (pid: number): boolean =>
    than === undefined || !processes.isOlder(processes.findProcess(pid) ?? than, than);
  const pids = processes.allPids().filter(isOldEnough);
  return pids.flatMap((pid) => describeProcess(pid) ?? []);
}

/**
 * Describes the process if it is k0s. The arguments are read only from a trusted process, because another process may
 * have gigabytes of arguments or change them without end.
 */
function describeProcess(pid: number): FoundService | undefined {
  const args =
    // Guard service-process. Nobody else chooses the paths of the service.
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

/**
 * Returns the process `original`, or a younger process of the same parent, if it was started from `path`. Another file
 * may have replaced the file at `path` since.
 */
export function findService(path: string, original: Omit<ProcessId, 'pid'>): ProcessId | undefined {
  const { parent } = original;
  for (const pid of processes.childrenOf(parent) ?? processes.allPids()) {
    const process = processes.findProcess(pid);
    if (process?.parent !== parent || processes.isOlder(process, original)) continue;
    // An orphaned process of any user becomes a child of PID 1, and that user chose its arguments. So the process is
    // skipped unless it passes the trust check. A `k0s api` whose k0s was killed becomes a child of PID 1 as well, so
    // the arguments must name a role.
    // Guard service-restarted. An orphan of another user is not the restarted service.
    if (whyForeign(pid) !== undefined || !processes.wasStartedFrom(pid, path)) continue;
    if (processes.argumentsOf(pid).some(isRole)) return process;
  }
  return undefined;
}

/** k0s treats `server` as `controller`. */
const isRole = (word = ''): boolean => ['controller', 'server', 'worker'].includes(word);

export interface ServiceArguments {
  readonly isController: boolean;
  /** The components that are switched off. */
  readonly disabled?: readonly string[];
  /** The path as it is given: it may be relative to the working directory of the process. */
  readonly statusSocket?: string;
  /** The path as it is given: it may be relative to the working directory of the process. */
  readonly dataDirectory?: string;
  /** The name of the worker profile. */
  readonly profile?: string;
  /** The name under which the kubelet registers. */
  readonly hostnameOverride?: string;
}

/**
 * Returns undefined unless the command line is `<program> controller|server|worker …`. The program may also be a script
 * that an interpreter runs.
 */
export function readServiceArguments(argv: readonly string[]): ServiceArguments | undefined {
  const at = [1, 2].find((index) => isRole(argv[index]));
  if (at === undefined) return undefined;
  const rest = argv.slice(at + 1);
  const kubeletArguments = wordsIn(valueOf(rest, ['--kubelet-extra-args']) ?? '');
  const disabled = valuesOf(rest, ['--disable-components']).flatMap((list) => list.split(','));
  return defined({
    isController: argv[at] !== 'worker',
    disabled: disabled.length > 0 ? disabled : undefined,
    statusSocket: valueOf(rest, ['--status-socket']),
    dataDirectory: valueOf(rest, ['--data-dir', '-d']),
    profile: valueOf(rest, ['--profile']),
    hostnameOverride: valueOf(kubeletArguments, ['--hostname-override']),
  });
}

/** Splits the value of one flag into arguments, and removes their quotes. */
function wordsIn(text: string): string[] {
  const quoted = [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)];
  return quoted.map(([word]) => word.replaceAll(/["']/g, ''));
}

/** Returns the last value of the flag; undefined if there is no value or the value is empty. */
export function valueOf(argv: readonly string[], names: readonly string[]): string | undefined {
  return valuesOf(argv, names).at(-1) || undefined;
}

/** Returns all values of the flag, from both forms: `--flag value` and `--flag=value`. */
function valuesOf(argv: readonly string[], names: readonly string[]): string[] {
  return argv.flatMap((word, index) => {
    const name = names.find((candidate) => word === candidate || word.startsWith(`${candidate}=`));
    if (name === undefined) return [];
    return [word === name ? (argv[index + 1] ?? '') : word.slice(name.length + 1)];
  });
}
