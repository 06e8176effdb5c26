/** Gathers the facts about the host, again for each decision. */
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import {
  isStaged,
  type Journal,
  type UpdateJournal,
  type UpdatePhase,
  type Work,
} from '../journal.ts';
import type { StatePaths } from '../state/state-directory.ts';
import { DistrustError, fileTrust } from '../state/trusted-path.ts';
import { findService, findServices } from './find-services.ts';
import { isSameProcess, type ProcessId, type ServiceFacts } from './host.ts';
import { executableOf, executes, findProcess, wasStartedFrom } from './processes.ts';
import type { ServicePlaces } from './service-place.ts';
import { askService, STATUS_TIMEOUT_MS, type TrustedAnswer } from './trusted-service.ts';
import { ownAgentOf } from './worker-profile.ts';

export interface HostPlace {
  readonly places: Pick<ServicePlaces, 'current' | 'search'>;
  /**
   * The absolute path of the binary. If it is undefined, the agent uses the file that the running
   * service executes.
   */
  readonly binary: string | undefined;
  readonly paths?: Pick<StatePaths, 'ownAgent'>;
}

/**
 * The phases of an update in which the next step is a restart. The restart needs the process of the service, so the
 * agent searches for it.
 */
const SEARCHING: readonly UpdatePhase[] = ['swapped', 'swappedBack'];

/**
 * Returns the facts about the service and its host. If the service does not answer, `problem` says
 * why.
 */
export async function observeHost(
  { places, binary: configured, paths }: HostPlace,
  journal: Journal,
): Promise<ServiceFacts> {
  const update = journal.phase === 'idle' || isStaged(journal) ? undefined : journal;
  const known = configured ?? update?.work.binary;
  try {
    const answer = await askKnownPlace(places, known, update?.process);
    const { version, pid, process } = answer;
    const binary = known ?? executableOf(pid);
    // Guard binary-path. The agent replaces no binary that others can change.
    if (binary !== undefined) await fileTrust.assertReplaceable(binary);
    // Guard binary-runs. The version counts only if the process runs the file at the path.
    const current = binary !== undefined && executes(pid, binary);
    const own = await ownAgentOf(answer, places.current, paths?.ownAgent);
    // If the process that answered has ended in the meantime, its answer says nothing about the service.
    if (!isSameProcess(findProcess(pid), process))
      throw new Error(`PID ${pid} ended while it was examined`);
    return defined({ running: { version, process, current }, service: process, binary, ...own });
  } catch (error) {
    const service = findUnresponsiveService(update);
    const problem = `no status from ${places.current.statusSocket}: ${messageOf(error)}`;
    const distrust = error instanceof DistrustError ? error.message : undefined;
    return defined({ problem, distrust, service, binary: known });
  }
}

/**
 * Asks the known status socket. If it does not answer, the service may have restarted with another socket. So the
 * function searches for the service once more.
 */
async function askKnownPlace(
  places: HostPlace['places'],
  binary?: string,
  ended?: ProcessId,
): Promise<TrustedAnswer> {
  const { statusSocket } = places.current;
  try {
    return await askService(statusSocket, STATUS_TIMEOUT_MS, binary);
  } catch (error) {
    const found = (await places.search(ended)).statusSocket;
    if (found === statusSocket) throw error;
    return await askService(found, STATUS_TIMEOUT_MS, binary);
  }
}

/**
 * Returns the process of a service that does not answer. The function first looks for a process that the journal names.
 * It searches the process table only if a restart needs the process.
 */
function findUnresponsiveService(journal?: UpdateJournal): ProcessId | undefined {
  for (const known of [journal?.fresh, journal?.process, journal?.work.original]) {
    const process = known && findProcess(known.pid);
    if (isSameProcess(process, known)) return process;
  }
  return journal && SEARCHING.includes(journal.phase) ? searchService(journal.work) : undefined;
}

/**
 * Returns the process of the service, whether it answers or not. This is expensive, because it reads the whole process
 * table.
 */
export function searchService({ binary, original }: Work): ProcessId | undefined {
  const found = findService(binary, original);
  if (found || findProcess(original.parent) !== undefined) return found;
  // A service manager may have replaced the supervisor together with the service. Then only the command line identifies
  // the service.
  // Guard service-searched. The agent restarts no other k0s.
  for (const { pid } of findServices()) if (wasStartedFrom(pid, binary)) return findProcess(pid);
  return undefined;
}
