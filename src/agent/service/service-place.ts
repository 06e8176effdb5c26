/**
 * Finds the status socket and the data directory of the service. The values come from the flags. If a flag is missing,
 * the value comes from the running service, and otherwise from the defaults.
 */
import { sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { sameJson } from '../../util/json.ts';
import { createListeners } from '../../util/listeners.ts';
import type { BasicTools } from '../../util/tools.ts';
import { DEFAULT_PLACE, type FoundService, type ServicePlace } from './find-services.ts';
import type { ProcessId } from './host.ts';
import type { ServiceStatus } from './status-socket.ts';

/** The values of the flags. They override the values of the service that was found. */
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
  /** The result of the last search. Before the first search it contains the values of the flags and the defaults. */
  readonly current: ServicePlace;
  /**
   * Searches for the service, at most once a second, and returns its place. If it finds no service, it returns the last
   * place that was proven. It ignores processes that are older than `ended`. Never rejects.
   */
  readonly search: (ended?: ProcessId) => Promise<ServicePlace>;
  /** Calls the listener after each change of `current`. The returned function unsubscribes. */
  readonly onChange: (listener: () => void) => () => void;
  /** Repeats the search until `stop` aborts, because nothing signals that a service has started. Never rejects. */
  readonly keepSearching: (stop: AbortSignal) => Promise<void>;
}

interface Choice {
  /** The service that was found; undefined if no service, or more than one service, was found. */
  readonly found?: ServicePlace;
  /** Says for the log why this place was chosen. */
  readonly why: string;
}

interface SearchResult extends Choice {
  readonly isProven: boolean;
}

/**
 * Returns the place of the service. Until `search` finds the service, the place consists of the flags, and of defaults
 * for the missing flags.
 */
export function servicePlaces({
  flags,
  findServices,
  askStatus,
  clock,
  log,
}: PlaceParts): ServicePlaces {
  const listeners = createListeners();
  /**
   * The last place at which a service has proven that it is k0s. Before that, it consists of the flags, and of defaults
   * for the missing flags.
   */
  let fallback: ServicePlace = { ...DEFAULT_PLACE, ...flags };
  let place = fallback;
  let isFound = false;
  let logged = '';
  let searchedAt = Number.NEGATIVE_INFINITY;
  /**
   * Returns the service that was found, and whether it is proven. An unproven process looks like the service but has
   * not answered, for example because it is still starting.
   */
  const findOne = async (ended?: ProcessId): Promise<SearchResult> => {
    const candidates = findServices(ended).filter(
      ({ statusSocket }) => flags.statusSocket === undefined || flags.statusSocket === statusSocket,
    );
    // Only the service itself answers on its socket with its own PID. A service that is known already is not asked
    // again, because the answer is expensive: a worker sends a request to the API server before it answers, and old
    // versions request all Nodes.
    const [first, ...rest] = candidates;
    const isKnown =
      isFound && rest.length === 0 && sameJson({ ...first, ...flags, pid: undefined }, fallback);
    const ask = async (each: FoundService) =>
      await askStatus(each.statusSocket).catch(() => undefined);
    const answers = isKnown ? candidates : await Promise.all(candidates.map(ask));
    // Guard place-pid. Only the service itself answers with its own PID.
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
    // Anybody may start a process that looks like the service. So an unproven process does not replace a place that was
    // proven before.
    // Guard place-proven. An unproven process does not replace the proven service.
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

/** Returns the candidate if there is exactly one. Otherwise `why` says that there is none or that there are several. */
function onlyOneOf([first, ...others]: readonly FoundService[]): Choice {
  if (first === undefined)
    return { why: 'no process looks like the service: flags and defaults apply' };
  const { pid, ...found } = first;
  if (others.length === 0) return { found, why: `from the command line of PID ${pid}` };
  const pids = [pid, ...others.map((other) => other.pid)].join(', ');
  const several = `several processes may be the service (PIDs ${pids}): flags and defaults apply`;
  return { why: `${several}; choose one with --status-socket` };
}
