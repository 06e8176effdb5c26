/** Owns gathering the facts of the host, fresh for every decision. */
import { messageOf } from '../util/errors.ts';
import type { HostFacts, ProcessId, RunningService } from './host.ts';
import { isSameProcess } from './host.ts';
import type { Journal, UpdatePhase } from './journal.ts';
import { isBundle } from './journal.ts';
import { executableOf, executes, findProcess, findService } from './processes.ts';
import { askStatus } from './status-socket.ts';

export interface HostPlace {
  readonly statusSocket: string;
  /** Absolute path of the binary, where it is not to be found out from the running service. */
  readonly binary?: string;
}

/** A worker's first answer takes a second (the service builds a client for it), more on a busy machine. */
const STATUS_TIMEOUT_MS = 5_000;

export async function observeHost(place: HostPlace, journal: Journal): Promise<HostFacts> {
  const known = place.binary ?? (journal.phase === 'idle' || isBundle(journal) ? undefined : journal.work.binary);
  try {
    const { version, pid } = await askStatus(place.statusSocket, STATUS_TIMEOUT_MS);
    const process = await findProcess(pid);
    if (process === undefined) throw new Error(`PID ${pid}, which the status socket names, is not seen here`);
    const binary = known ?? (await executableOf(pid));
    const current = binary !== undefined && (await executes(pid, binary));
    const running: RunningService = { version, process, current };
    return { running, service: process, ...(binary !== undefined && { binary }) };
  } catch (error) {
    const service = await findSilentService(journal);
    const problem = `no status from ${place.statusSocket}: ${messageOf(error)}`;
    return { problem, ...(service && { service }), ...(known !== undefined && { binary: known }) };
  }
}

/** A service that lives but doesn't answer: one seen before, or what runs the binary where a restart depends on it. */
async function findSilentService(journal: Journal): Promise<ProcessId | undefined> {
  if (journal.phase === 'idle' || isBundle(journal)) return undefined;
  const { binary, original } = journal.work;
  for (const seen of [journal.fresh, journal.process, original]) {
    const process = seen && (await findProcess(seen.pid));
    if (isSameProcess(process, seen)) return process;
  }
  return SOUGHT.includes(journal.phase) ? await findService(binary, original.parent) : undefined;
}

/** A restart depends on it, or people are told how often it came and went. */
const SOUGHT: readonly UpdatePhase[] = ['swapped', 'restarted', 'soaking', 'restored'];
