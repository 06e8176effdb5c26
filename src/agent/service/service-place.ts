/**
 * Finds the status socket and the data directory of the service: from flags, or else from the running service, or else
 * the defaults.
 */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { createListeners } from '../../util/listeners.ts';
import type { BasicTools } from '../../util/tools.ts';
import { DEFAULT_PLACE, type FoundService, type ServicePlace } from './find-services.ts';
import type { ProcessId } from './host.ts';
import type { ServiceStatus } from './status-socket.ts';

/** The values of flags. They override what is found. */
export type PlaceFlags = Partial<
  Pick<ServicePlace, 'statusSocket' | 'dataDirectory' | 'hostnameOverride'>
>;

export interface PlaceParts extends BasicTools {
  readonly flags: PlaceFlags;
  readonly findServices: (than?: ProcessId) => readonly FoundService[];
  readonly askStatus: (statusSocket: string) => Promise<ServiceStatus>;
}

const PAUSE_MS = 1_000;
const UNKNOWN_POLL_MS = 5_000;
const FOUND_POLL_MS = 60_000;

export interface ServicePlaces {
  /** The result of the last search. Before the first search it has the flags and defaults. */
  readonly current: ServicePlace;
  /**
   * Searches the service, at most once a second, and returns its place. If it finds none, it returns the last place that
   * was proven. Processes older than `ended` are ignored. Never rejects.
   */
  readonly search: (ended?: ProcessId) => Promise<ServicePlace>;
  /** Calls the listener after each change of `current`. The returned function unsubscribes. */
  readonly onChange: (listener: () => void) => () => void;
  /** Searches again and again until `stop` aborts, because nothing signals that a service has started. Never rejects. */
  readonly keepSearching: (stop: AbortSignal) => Promise<void>;
}

interface Choice {
  /** The service that was found. It is undefined if there is none, or more than one. */
  readonly found?: ServicePlace;
  /** Says for the log why this place was chosen. */
  readonly why: string;
}

interface SearchResult extends Choice {
  readonly isProven: boolean;
}

/**
 * Returns the place that the flags name, with defaults for the rest, until `search` finds the
 * service.
 */
export function servicePlaces({
  flags,
  findServices,
  askStatus,
  clock,
  log,
}: PlaceParts): ServicePlaces {
  const listeners = createListeners();
  /** The last place at which a service has proven that it is k0s; before that, the defaults with the flags. */
  let fallback: ServicePlace = { ...DEFAULT_PLACE, ...flags };
  let place = fallback;
  let isFound = false;
  let logged = '';
  let searchedAt = Number.NEGATIVE_INFINITY;
  /**
   * Returns the service that was found, and whether it is proven. An unproven process only looks like the service, for
   * example while it starts.
   */
  const findOne = async (ended?: ProcessId): Promise<SearchResult> => {
    const candidates = findServices(ended).filter(
      ({ statusSocket }) => flags.statusSocket === undefined || flags.statusSocket === statusSocket,
    );
    // Only the service itself answers on its socket with its own PID. A worker asks the API server before it answers,
    // and old versions ask for all Nodes, so a known service is not asked again.
    const [first, ...rest] = candidates;
    const isKnown =
      isFound && rest.length === 0 && sameJson({ ...first, ...flags, pid: undefined }, fallback);
    const ask = async (each: FoundService) =>
      await askStatus(each.statusSocket).catch(() => undefined);
    const answers = isKnown ? candidates : await Promise.all(candidates.map(ask));
    const proven = candidates.filter(({ pid }, index) => answers[index]?.pid === pid);
    const isProven = proven.length > 0;
    return { isProven, ...onlyOneOf(isProven ? proven : candidates) };
  };
  const search: ServicePlaces['search'] = async (ended) => {
    const now = clock.monotonic();
    if (now - searchedAt < PAUSE_MS) return place;
    searchedAt = now;
    const failed = (error: unknown): SearchResult => ({ isProven: false, why: messageOf(error) });
    const { found, isProven, why } = await findOne(ended).catch(failed);
    // Without proof, a place that was proven before is used, because anybody may start a process that looks like the
    // service.
    const next = found && (isProven || !isFound) ? { ...found, ...flags } : fallback;
    const hasChanged = !sameJson(next, place);
    if (isProven && found) {
      fallback = next;
      isFound = true;
    }
    place = next;
    // A search is logged only if its result has changed.
    const text = JSON.stringify([place, why]);
    if (text !== logged) log.info('paths of the service', { ...place, why });
    logged = text;
    if (hasChanged) listeners.call();
    return next;
  };
  return {
    get current() {
      return place;
    },
    search,
    onChange: (listener) => listeners.add(listener),
    async keepSearching(stop) {
      while (!stop.aborted) {
        await search();
        await sleep(clock, isFound ? FOUND_POLL_MS : UNKNOWN_POLL_MS, stop).catch(() => undefined);
      }
    },
  };
}

/** Returns the only candidate. If there is none or more than one, `why` says so. */
function onlyOneOf([first, ...others]: readonly FoundService[]): Choice {
  if (first === undefined)
    return { why: 'no process looks like the service: flags and defaults apply' };
  const { pid, ...found } = first;
  if (others.length === 0) return { found, why: `from the command line of PID ${pid}` };
  const pids = [pid, ...others.map((other) => other.pid)].join(', ');
  const several = `several processes may be the service (PIDs ${pids}): flags and defaults apply`;
  return { why: `${several}; choose one with --status-socket` };
}
