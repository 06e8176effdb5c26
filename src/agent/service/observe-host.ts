/** Owns gathering the facts of the host, fresh for every decision. */
import { messageOf } from '../../util/errors.ts';
import type { Journal, UpdatePhase } from '../journal.ts';
import { isBundle } from '../journal.ts';
import type { Work } from '../work.ts';
import { findServices } from './discovery/find-services.ts';
import type { ServicePlaces } from './discovery/service-place.ts';
import type { HostFacts, ProcessId, RunningService } from './host.ts';
import { isSameProcess } from './host.ts';
import { executableOf, executes, findProcess, findService, wasStartedFrom } from './processes.ts';
import { askStatus, type ServiceStatus } from './status-socket.ts';

export interface HostPlace {
  readonly places: Pick<ServicePlaces, 'current' | 'look'>;
  /** Absolute path of the binary, where it is not to be found out from the running service. */
  readonly binary: string | undefined;
}

/** A worker's first answer takes a second (the service builds a client for it), more on a busy machine. */
const STATUS_TIMEOUT_MS = 5_000;

export async function observeHost({ places, binary: told }: HostPlace, journal: Journal): Promise<HostFacts> {
  const known = told ?? (journal.phase === 'idle' || isBundle(journal) ? undefined : journal.work.binary);
  try {
    const { version, pid } = await askService(places);
    const process = await findProcess(pid);
    if (process === undefined) throw new Error(`PID ${pid}, which the status socket names, is not seen here`);
    const binary = known ?? (await executableOf(pid));
    const current = binary !== undefined && (await executes(pid, binary));
    const running: RunningService = { version, process, current };
    return { running, service: process, ...(binary !== undefined && { binary }) };
  } catch (error) {
    const service = await findSilentService(journal);
    const problem = `no status from ${places.current.statusSocket}: ${messageOf(error)}`;
    return { problem, ...(service && { service }), ...(known !== undefined && { binary: known }) };
  }
}

/** Where the socket that is known is silent, the service may have been started with another one. */
async function askService(places: HostPlace['places']): Promise<ServiceStatus> {
  const { statusSocket } = places.current;
  try {
    return await askStatus(statusSocket, STATUS_TIMEOUT_MS);
  } catch (error) {
    const found = (await places.look()).statusSocket;
    if (found === statusSocket) throw error;
    return await askStatus(found, STATUS_TIMEOUT_MS);
  }
}

/** A service that lives but doesn't answer: one seen before, or what runs the binary where a restart depends on it. */
async function findSilentService(journal: Journal): Promise<ProcessId | undefined> {
  if (journal.phase === 'idle' || isBundle(journal)) return undefined;
  for (const seen of [journal.fresh, journal.process, journal.work.original]) {
    const process = seen && (await findProcess(seen.pid));
    if (isSameProcess(process, seen)) return process;
  }
  return SOUGHT.includes(journal.phase) ? await searchService(journal.work) : undefined;
}

/** The service's process, answering or not: through the whole process table, which is not for every moment. */
export async function searchService({ binary, original }: Work): Promise<ProcessId | undefined> {
  return (await findService(binary, original.parent)) ?? (await findOrphanedWork(binary, original.parent));
}

/** A service manager may replace the supervisor with the service: then only the words that it was started with tell it. */
async function findOrphanedWork(binary: string, formerParent: number): Promise<ProcessId | undefined> {
  if ((await findProcess(formerParent)) !== undefined) return undefined;
  for (const { pid } of await findServices()) if (await wasStartedFrom(pid, binary)) return await findProcess(pid);
  return undefined;
}

/** A restart depends on it. */
const SOUGHT: readonly UpdatePhase[] = ['swapped', 'swappedBack'];
