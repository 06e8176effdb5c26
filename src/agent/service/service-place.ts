/** Owns where the service keeps its things: as flags say, else as the running service was told, else as the original does. */
import { type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import type { Logger } from '../../util/log.ts';
import { DEFAULT_DATA_DIRECTORY, DEFAULT_STATUS_SOCKET, type FoundService } from './find-services.ts';
import type { ServiceStatus } from './status-socket.ts';

export interface ServicePlace {
  readonly statusSocket: string;
  readonly dataDirectory: string;
  /** Name that the kubelet was told to register under. */
  readonly hostnameOverride?: string;
  /** What the service takes for the host's name in place of the system's. */
  readonly hostname?: string;
}

/** What people said: it wins over what is found. */
export type PlaceFlags = Partial<Pick<ServicePlace, 'statusSocket' | 'dataDirectory'>>;

export interface PlaceParts {
  readonly flags: PlaceFlags;
  readonly findServices: () => Promise<readonly FoundService[]>;
  readonly askStatus: (statusSocket: string) => Promise<ServiceStatus>;
  readonly clock: Clock;
  readonly log: Logger;
}

const PAUSE_MS = 1_000;
const UNKNOWN_POLL_MS = 5_000;
const FOUND_POLL_MS = 60_000;

interface Finding {
  readonly service?: FoundService;
  /** False for what merely looks like the service, as it does while it starts. */
  readonly isProven: boolean;
  readonly why: string;
}

const DEFAULTS: ServicePlace = { statusSocket: DEFAULT_STATUS_SOCKET, dataDirectory: DEFAULT_DATA_DIRECTORY };

export class ServicePlaces {
  readonly #parts: PlaceParts;
  readonly #listeners = new Set<() => void>();
  #place: ServicePlace;
  #isFound = false;
  #said = '';
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: PlaceParts) {
    this.#parts = parts;
    this.#place = { ...DEFAULTS, ...parts.flags };
  }

  /** As found when it was looked for last, or as flags and defaults say before that. */
  get current(): ServicePlace {
    return this.#place;
  }

  /** Called after each change of `current`; the returned function ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Looks until `stop` aborts: often while no service has told its place, since nothing announces that one has begun to. */
  async keepLooking(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.look();
      await sleep(this.#parts.clock, this.#isFound ? FOUND_POLL_MS : UNKNOWN_POLL_MS, stop).catch(() => undefined);
    }
  }

  /**
   * Looks at the processes that run now, no more than once a second; where none is the service, what was known stays.
   * Never rejects.
   */
  async look(): Promise<ServicePlace> {
    const now = this.#parts.clock.monotonic();
    if (now - this.#lookedAt < PAUSE_MS) return this.#place;
    this.#lookedAt = now;
    const { service, isProven, why } = await this.#findOne().catch(unknownBecause);
    const found = service === undefined ? this.#place : { ...placeOf(service), ...this.#parts.flags };
    const hasChanged = !sameJson(found, this.#place);
    this.#isFound ||= isProven;
    this.#place = found;
    this.#say(why);
    if (hasChanged) for (const listener of this.#listeners) listener();
    return found;
  }

  async #findOne(): Promise<Finding> {
    const { statusSocket } = this.#parts.flags;
    const running = await this.#parts.findServices();
    const candidates = running.filter((service) => (statusSocket ?? service.statusSocket) === service.statusSocket);
    const proven = await this.#proven(candidates);
    const isProven = proven.length > 0;
    const [only, ...more] = isProven ? proven : candidates;
    if (only === undefined)
      return { isProven, why: 'nothing that looks like the service runs: flags and defaults hold' };
    if (more.length === 0) return { service: only, isProven, why: `as the command line of PID ${only.pid} tells` };
    const pids = [only, ...more].map(({ pid }) => pid).join(', ');
    return {
      isProven,
      why: `each of the PIDs ${pids} may be the service, unless --status-socket tells: flags and defaults hold`,
    };
  }

  /** The service names its own PID on its socket; whatever else was started with the same words does not. */
  async #proven(candidates: readonly FoundService[]): Promise<FoundService[]> {
    const proven: FoundService[] = [];
    for (const candidate of candidates) {
      const status = await this.#parts.askStatus(candidate.statusSocket).catch(() => undefined);
      if (status?.pid === candidate.pid) proven.push(candidate);
    }
    return proven;
  }

  /** Once for each answer, not for each question. */
  #say(why: string): void {
    const said = JSON.stringify([this.#place, why]);
    if (said === this.#said) return;
    this.#said = said;
    this.#parts.log.info('the place of the service', { ...this.#place, why });
  }
}

function unknownBecause(error: unknown): Finding {
  return { isProven: false, why: messageOf(error) };
}

function placeOf(service: FoundService): ServicePlace {
  const { pid: _pid, ...place } = service;
  return place;
}
