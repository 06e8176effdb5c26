/** Owns gathering the facts of the host, fresh for every decision. */
import type { Logger } from '../util/log.ts';
import type { HostFacts, ProcessId, RunningService } from './host.ts';
import { isSameProcess } from './host.ts';
import type { Journal } from './journal.ts';
import { executableOf, executes, findProcess, findService } from './processes.ts';
import type { ServiceStatus } from './status-socket.ts';
import { askStatus } from './status-socket.ts';

export interface HostPlace {
  readonly statusSocket: string;
  /** Absolute path of the binary, where it is not to be found out from the running service. */
  readonly binary?: string;
  readonly log: Logger;
}

/** A worker's first answer takes a second (the service builds a client for it), more on a busy machine. */
const STATUS_TIMEOUT_MS = 5_000;

export async function observeHost(place: HostPlace, journal: Journal): Promise<HostFacts> {
  const status = await askStatus(place.statusSocket, STATUS_TIMEOUT_MS).catch((error: unknown) => {
    place.log.debug('the status socket does not answer', { socket: place.statusSocket, error });
    return undefined;
  });
  const known = place.binary ?? (journal.phase === 'idle' ? undefined : journal.work.binary);
  const binary = known ?? (status && (await executableOf(status.pid)));
  const running = status && (await observeService(status, binary));
  const service = running?.process ?? (await findSilentService(journal));
  return { ...(running && { running }), ...(service && { service }), ...(binary !== undefined && { binary }) };
}

async function observeService(status: ServiceStatus, binary: string | undefined): Promise<RunningService | undefined> {
  const process = await findProcess(status.pid);
  if (process === undefined) return undefined;
  const current = binary !== undefined && (await executes(status.pid, binary));
  return { version: status.version, process, current };
}

/** A service that lives but doesn't answer: one seen before, or what runs the binary where a restart depends on it. */
async function findSilentService(journal: Journal): Promise<ProcessId | undefined> {
  if (journal.phase === 'idle') return undefined;
  const { binary, original } = journal.work;
  for (const seen of [journal.process, original]) {
    const process = seen && (await findProcess(seen.pid));
    if (isSameProcess(process, seen)) return process;
  }
  const isSought = journal.phase === 'swapped' || journal.phase === 'restored';
  return isSought ? await findService(binary, original.parent) : undefined;
}
