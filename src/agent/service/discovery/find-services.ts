/** Owns finding the services that run on this host: in the process table, each with the places that its command line names. */
import { resolve } from 'node:path';
import { allPids, argumentsOf, ownerOf, variableOf, workingDirectoryOf } from '../processes.ts';
import { readServiceArguments } from './service-arguments.ts';

export interface FoundService {
  readonly pid: number;
  /** Absolute, as are all paths here. */
  readonly statusSocket: string;
  readonly dataDirectory: string;
  readonly hostnameOverride?: string;
  /** What the service takes for the host's name in place of the system's. */
  readonly hostname?: string;
}

/** The original's own; another user than root cannot write below /run. */
export const DEFAULT_STATUS_SOCKET = '/run/k0s/status.sock';
export const DEFAULT_DATA_DIRECTORY = '/var/lib/k0s';

/** Whatever looks like one by its command line: whether it is, its status socket tells. */
export async function findServices(): Promise<FoundService[]> {
  const found: FoundService[] = [];
  for (const pid of await allPids()) {
    const service = await describeProcess(pid);
    if (service !== undefined) found.push(service);
  }
  return found;
}

async function describeProcess(pid: number): Promise<FoundService | undefined> {
  const args = readServiceArguments(await argumentsOf(pid));
  if (args === undefined) return undefined;
  const directory = (await workingDirectoryOf(pid)) ?? '/';
  const dataDirectory = resolve(directory, args.dataDirectory ?? DEFAULT_DATA_DIRECTORY);
  const isRoot = ((await ownerOf(pid)) ?? 0) === 0;
  const usualSocket = isRoot ? DEFAULT_STATUS_SOCKET : resolve(dataDirectory, 'run', 'status.sock');
  const hostname = await variableOf(pid, 'AUTOPILOT_HOSTNAME');
  return {
    pid,
    statusSocket: resolve(directory, args.statusSocket ?? usualSocket),
    dataDirectory,
    ...(args.hostnameOverride !== undefined && { hostnameOverride: args.hostnameOverride }),
    ...(hostname && { hostname }),
  };
}
