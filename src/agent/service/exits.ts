/** Owns counting the processes of the service that come and go while a restarted one is waited for or watched. */
import type { Clock } from '../../util/clock.ts';
import type { Journal } from '../journal.ts';
import type { Work } from '../work.ts';
import type { HostFacts, ProcessId } from './host.ts';
import { isSameProcess } from './host.ts';

export interface ExitCountParts {
  /** The service's process where it does not answer. */
  readonly searchService: (work: Work) => Promise<ProcessId | undefined>;
  readonly clock: Clock;
}

/** Searching costs more than a look at the status socket, and a count need not be whole. */
const SEARCH_EVERY_MS = 1_000;

export class ExitCount {
  readonly #parts: ExitCountParts;
  readonly #seen = new Set<string>();
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ExitCountParts) {
    this.#parts = parts;
  }

  /** The facts with the number of ends so far; the process that the restart itself ended is none of them. */
  async see(host: HostFacts, journal: Journal): Promise<HostFacts> {
    if (journal.phase !== 'restarted' && journal.phase !== 'soaking') {
      this.#seen.clear();
      return host;
    }
    const { process, fresh, work } = journal;
    const alive = host.service ?? (await this.#search(work));
    const isOld = isSameProcess(alive, process) || isSameProcess(alive, work.original);
    if (alive !== undefined && !isOld) this.#seen.add(`${alive.pid} ${alive.started}`);
    // The last of them may live on, unless it is the one under watch, which is looked for each time.
    const isNoneLeft = fresh !== undefined && alive === undefined;
    const exits = this.#seen.size - (isNoneLeft ? 0 : 1);
    return exits > 0 ? { ...host, exits } : host;
  }

  async #search(work: Work): Promise<ProcessId | undefined> {
    const { searchService, clock } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#searchedAt < SEARCH_EVERY_MS) return undefined;
    this.#searchedAt = now;
    return await searchService(work);
  }
}
