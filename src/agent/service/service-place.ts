/** Finds status socket and data directory of the service: from flags, else from the running service, else the defaults. */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import type { Tools } from '../../util/tools.ts';
import { DEFAULT_PLACE, type FoundService, type ServicePlace } from './find-services.ts';
import type { ProcessId } from './host.ts';
import type { ServiceStatus } from './status-socket.ts';

/** From flags: they override what is found. */
export type PlaceFlags = Partial<Pick<ServicePlace, 'statusSocket' | 'dataDirectory' | 'hostnameOverride'>>;

export interface PlaceParts extends Pick<Tools, 'clock' | 'log'> {
  readonly flags: PlaceFlags;
  readonly findServices: (than?: ProcessId) => readonly FoundService[];
  readonly askStatus: (statusSocket: string) => Promise<ServiceStatus>;
}

const PAUSE_MS = 1_000;
const UNKNOWN_POLL_MS = 5_000;
const FOUND_POLL_MS = 60_000;

export class ServicePlaces {
  readonly #parts: PlaceParts;
  readonly #listeners = new Set<() => void>();
  #place: ServicePlace;
  /** The last place that a service proved. */
  #fallback: ServicePlace;
  #isFound = false;
  #logged = '';
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: PlaceParts) {
    this.#parts = parts;
    this.#fallback = { ...DEFAULT_PLACE, ...parts.flags };
    this.#place = this.#fallback;
  }

  /** The result of the last search; before the first one, flags and defaults. */
  get current(): ServicePlace {
    return this.#place;
  }

  /** Calls `listener` after each change of `current`; the returned function unsubscribes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Searches until `stop` aborts, more often while no service is found: nothing signals that one has started. */
  async keepSearching(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.search();
      await sleep(this.#parts.clock, this.#isFound ? FOUND_POLL_MS : UNKNOWN_POLL_MS, stop).catch(() => undefined);
    }
  }

  /** Searches those not older than `ended`, at most once a second. Without a result the last proven place counts. Never rejects. */
  async search(ended?: ProcessId): Promise<ServicePlace> {
    const now = this.#parts.clock.monotonic();
    if (now - this.#searchedAt < PAUSE_MS) return this.#place;
    this.#searchedAt = now;
    const { service, isProven, why } = await this.#findOne(ended).catch((error: unknown) => ({
      service: undefined,
      isProven: false,
      why: messageOf(error),
    }));
    // Without proof, a place that was proven before counts: anybody may start a process that looks like the service.
    const isBelieved = service !== undefined && (isProven || !this.#isFound);
    const found = !isBelieved ? this.#fallback : { ...placeOf(service), ...this.#parts.flags };
    const hasChanged = !sameJson(found, this.#place);
    if (isProven && service !== undefined) [this.#fallback, this.#isFound] = [found, true];
    this.#place = found;
    this.#logOnce(why);
    if (hasChanged) for (const listener of this.#listeners) listener();
    return found;
  }

  /** What is not proven only looks like the service, for example while it starts. */
  async #findOne(ended?: ProcessId) {
    const { statusSocket } = this.#parts.flags;
    const running = this.#parts.findServices(ended);
    const candidates = running.filter((service) => (statusSocket ?? service.statusSocket) === service.statusSocket);
    const proven = await this.#proven(candidates);
    const isProven = proven.length > 0;
    const [only, ...more] = isProven ? proven : candidates;
    if (only === undefined) return { isProven, why: 'no process looks like the service: flags and defaults apply' };
    if (more.length === 0) return { service: only, isProven, why: `from the command line of PID ${only.pid}` };
    const pids = [only, ...more].map(({ pid }) => pid).join(', ');
    return {
      isProven,
      why: `several processes may be the service (PIDs ${pids}): flags and defaults apply; choose one with --status-socket`,
    };
  }

  /** Only the service answers on its socket with its own PID. */
  async #proven(candidates: readonly FoundService[]): Promise<FoundService[]> {
    const proven: FoundService[] = [];
    for (const candidate of candidates) {
      const status = await this.#parts.askStatus(candidate.statusSocket).catch(() => undefined);
      if (status?.pid === candidate.pid) proven.push(candidate);
    }
    return proven;
  }

  /** Logs a result once, not after each search. */
  #logOnce(why: string): void {
    const text = JSON.stringify([this.#place, why]);
    if (text === this.#logged) return;
    this.#logged = text;
    this.#parts.log.info('place of the service', { ...this.#place, why });
  }
}

function placeOf(service: FoundService): ServicePlace {
  const { pid: _pid, ...place } = service;
  return place;
}
