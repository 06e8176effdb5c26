/** Counts how often the service's process ends, and how long it is silent, after a restart. */
import type { Clock } from '../../util/clock.ts';
import type { Journal, Work } from '../journal.ts';
import { type HostFacts, isSameProcess, type ProcessId } from './host.ts';

export interface ExitCountParts {
  readonly searchService: (work: Work) => ProcessId | undefined;
  readonly clock: Clock;
}

/** A search is expensive, and the count may miss some. */
const SEARCH_EVERY_MS = 250;

/** The returned function adds exits and silence to the facts; the process that the restart itself ended does not count. */
export function countExits({ searchService, clock }: ExitCountParts): (host: HostFacts, journal: Journal) => HostFacts {
  const processes = new Set<string>();
  let searchedAt = Number.NEGATIVE_INFINITY;
  let silentSince: number | undefined;
  const search = (work: Work, now: number): ProcessId | undefined => {
    if (now - searchedAt < SEARCH_EVERY_MS) return undefined;
    searchedAt = now;
    return searchService(work);
  };
  return (host, journal) => {
    if (journal.phase !== 'restarted' && journal.phase !== 'soaking') {
      processes.clear();
      silentSince = undefined;
      return host;
    }
    const now = clock.monotonic();
    silentSince = host.running === undefined ? (silentSince ?? now) : undefined;
    const { process, fresh, work } = journal;
    const alive = host.service ?? search(work, now);
    const isOld = isSameProcess(alive, process) || isSameProcess(alive, work.original);
    if (alive !== undefined && !isOld) processes.add(`${alive.pid} ${alive.started}`);
    // The last process may still live, unless it is the watched one, which is looked up each time.
    const isNoneLeft = fresh !== undefined && alive === undefined;
    const exits = processes.size - (isNoneLeft ? 0 : 1);
    return { ...host, ...(exits > 0 && { exits }), ...(silentSince !== undefined && { silentMs: now - silentSince }) };
  };
}
