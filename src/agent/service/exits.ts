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

export class ExitCount {
  readonly #parts: ExitCountParts;
  readonly #processes = new Set<string>();
  #searchedAt = Number.NEGATIVE_INFINITY;
  #silentSince: number | undefined;

  constructor(parts: ExitCountParts) {
    this.#parts = parts;
  }

  /** Adds exits and silence to the facts; the process that the restart itself ended does not count. */
  count(host: HostFacts, journal: Journal): HostFacts {
    if (journal.phase !== 'restarted' && journal.phase !== 'soaking') {
      this.#processes.clear();
      this.#silentSince = undefined;
      return host;
    }
    const now = this.#parts.clock.monotonic();
    this.#silentSince = host.running === undefined ? (this.#silentSince ?? now) : undefined;
    const { process, fresh, work } = journal;
    const alive = host.service ?? this.#search(work);
    const isOld = isSameProcess(alive, process) || isSameProcess(alive, work.original);
    if (alive !== undefined && !isOld) this.#processes.add(`${alive.pid} ${alive.started}`);
    // The last process may still live, unless it is the watched one, which is looked up each time.
    const isNoneLeft = fresh !== undefined && alive === undefined;
    const exits = this.#processes.size - (isNoneLeft ? 0 : 1);
    return {
      ...host,
      ...(exits > 0 && { exits }),
      ...(this.#silentSince !== undefined && { silentMs: now - this.#silentSince }),
    };
  }

  #search(work: Work): ProcessId | undefined {
    const { searchService, clock } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#searchedAt < SEARCH_EVERY_MS) return undefined;
    this.#searchedAt = now;
    return searchService(work);
  }
}
