/**
 * Stores what each viewer may see. Each request to the API server uses the token of the viewer, and never the rights of
 * this process.
 */
import { hash } from 'node:crypto';
import { isNotFound, isUnauthorized } from '../../kube/status-error.ts';
import { backoffDelay, type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { defined } from '../../util/json.ts';
import { semaphore } from '../../util/waits.ts';
import type { ReversibleDialect } from '../contract/roll-back.ts';
import { carryOut } from '../dashboard/actions.ts';
import { explainToPage } from '../dashboard/explain-node.ts';
import { explainRun } from '../dashboard/explain-run.ts';
import { createFeed, type Feed } from '../dashboard/feed.ts';
import { followPlans } from '../dashboard/follow-plans.ts';
import { type Seen, stateOf } from '../dashboard/make-state.ts';
import { type AskEvents, eventsAboutNode } from '../dashboard/node-events.ts';
import { previewText } from '../dashboard/preview.ts';
import type { ActionRequest, ActionResult, RunShown, Said } from '../dashboard/state.ts';
import type { ConnectionFlags } from '../options.ts';
import { connect, inSession, type Session } from '../status/status-session.ts';
import { identify, type TokenOwner } from './identify.ts';

/** Milliseconds after which the API server is asked again who the owner of a token is. */
const CHECK_MS = 10_000;
/** Milliseconds for which the plans of a viewer are still followed after the last page was closed, because the viewer may open it again. */
const LINGER_MS = 30_000;
/**
 * Milliseconds after which the lists and watches of a viewer start again. After a right was taken away, the API server lets a watch
 * continue, but refuses a new list.
 */
const RENEW_MS = 5 * 60_000;
/** The maximum number of viewers whose tokens are known at the same time. */
const MOST_KNOWN = 256;
/**
 * The maximum number of viewers for whom the plans are watched at the same time. Each viewer needs memory for the Nodes
 * of the cluster.
 */
const MOST_FOLLOWED = 8;
/**
 * The maximum number of viewers of one user for whom the plans are watched. A user may have many tokens, and each token
 * counts as a viewer.
 */
const MOST_OF_USER = 4;
/** The maximum number of viewers whose rights are tested at the same time, by their first lists. */
const TESTED_AT_ONCE = 2;
/** Milliseconds after which the test of a viewer's rights ends, so that another viewer is tested. */
const TEST_MS = 60_000;
/** Each viewer gets at most 1/SHARE of the time of this process, because the process also carries out plans. */
const SHARE = 40;
const LEAST_PAUSE_MS = 1000;

export interface Viewer {
  readonly user: string;
  readonly feed: Feed;
  /**
   * Follows the plans for this viewer from now on. The viewer gets a place after the API server has answered the first lists. Returns false
   * if the plans are already followed for too many viewers.
   */
  follow(): boolean;
  explain(plan: string, node: string): readonly Said[];
  /** Returns an earlier run of the plan; undefined if there is no such run. */
  explainRun(plan: string, run: string): RunShown | undefined;
  /** Resolves with the Events about a node of the plan, as far as the user may read them. */
  eventsOf: AskEvents;
  act(request: ActionRequest): Promise<ActionResult>;
  /** Previews the plans that the text contains. */
  preview(text: string): Promise<ActionResult>;
}

export type FoundViewer =
  | { readonly kind: 'known'; readonly viewer: Viewer }
  | Exclude<TokenOwner, { kind: 'known' }>;

export interface ViewersOptions {
  readonly connection: Pick<ConnectionFlags, 'kubeconfig' | 'context' | 'apiPort'>;
  readonly modules: readonly ReversibleDialect[];
  /** The name of the cluster on the page; undefined if nobody has named it. */
  readonly cluster?: string | undefined;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly random?: () => number;
}

export interface Viewers {
  /**
   * Resolves with the viewer to whom the token belongs. If the API server has not confirmed the token within the last
   * ten seconds, the API server is asked first.
   */
  find(token: string): Promise<FoundViewer>;
  /** Returns true if the API server has confirmed the token and has not refused it since. */
  knows(token: string): boolean;
  /** Closes the pages of the viewer with this token, and removes the viewer. */
  forget(token: string): void;
  /** Checks the tokens of all open pages until `abort` fires. */
  run(abort: AbortSignal): Promise<void>;
}

interface Kept {
  readonly token: string;
  readonly viewer: Viewer;
  checkedAt: number;
  stop: AbortController | undefined;
  /** True if the plans are followed for this viewer, who has the right to list them. */
  hasPlace: boolean;
  /** The monotonic time at which a page was last open. */
  usedAt: number;
}

export function createViewers(options: ViewersOptions): Viewers {
  const { connection, clock, abort } = options;
  const kept = new Map<string, Kept>();
  const asking = new Map<string, Promise<FoundViewer>>();
  const drop = (key: string): void => {
    const each = kept.get(key);
    kept.delete(key);
    if (each) stopFollowing(each, 'the viewer has signed out');
    each?.viewer.feed.end();
  };
  const followed = (): Kept[] => [...kept.values()].filter(({ stop }) => stop !== undefined);
  const testing = semaphore(TESTED_AT_ONCE);
  const keep = (key: string, token: string, user: string): Viewer => {
    const known = kept.get(key);
    const now = clock.monotonic();
    if (known) {
      known.checkedAt = now;
      return known.viewer;
    }
    const [oldest] = [...kept].find(([, { hasPlace }]) => !hasPlace) ?? [];
    if (kept.size >= MOST_KNOWN && oldest !== undefined) drop(oldest);
    const own = createViewer(options, { token, user }, () => drop(key));
    const each: Kept = {
      token,
      viewer: { ...own.parts, follow },
      checkedAt: now,
      stop: undefined,
      hasPlace: false,
      usedAt: now,
    };
    function follow(): boolean {
      each.usedAt = clock.monotonic();
      if (each.stop) return true;
      if (!mayTry(followed(), user)) return false;
      each.stop = new AbortController();
      const place: Place = {
        testing,
        take: () => {
          each.hasPlace ||= takePlace(followed(), user);
          return each.hasPlace;
        },
        leave: () => {
          each.hasPlace = false;
        },
      };
      void own.run(place, AbortSignal.any([each.stop.signal, abort]));
      return true;
    }
    kept.set(key, each);
    return each.viewer;
  };
  const ask = async (key: string, token: string): Promise<FoundViewer> => {
    const identity = await identify(connection, token, abort);
    if (identity.kind === 'known')
      return { kind: 'known', viewer: keep(key, token, identity.user) };
    if (identity.kind === 'refused') drop(key);
    return identity;
  };
  const find = async (token: string): Promise<FoundViewer> => {
    const key = hash('sha256', token);
    const known = kept.get(key);
    if (known && clock.monotonic() - known.checkedAt < CHECK_MS)
      return { kind: 'known', viewer: known.viewer };
    const asked = asking.get(key) ?? ask(key, token).finally(() => asking.delete(key));
    asking.set(key, asked);
    return await asked;
  };
  return {
    find,
    knows: (token) => kept.has(hash('sha256', token)),
    forget: (token) => drop(hash('sha256', token)),
    async run(stop) {
      while (!stop.aborted) {
        await sleep(clock, CHECK_MS, stop).catch(() => undefined);
        if (!stop.aborted) await checkPages(followed(), find, clock.monotonic());
      }
      for (const key of kept.keys()) drop(key);
    },
  };
}

/** A place for a viewer for whom the plans are followed. */
interface Place {
  /** Limits how many viewers are tested at once. */
  readonly testing: <T>(work: () => Promise<T>) => Promise<T>;
  /** Returns false if no place is free. */
  take(): boolean;
  leave(): void;
}

function stopFollowing(each: Kept, why: string): void {
  each.stop?.abort(new Error(why));
  each.stop = undefined;
  each.hasPlace = false;
}

/** Returns false if the user has too many viewers already, or if another viewer of the user can get no place. */
function mayTry(followed: readonly Kept[], user: string): boolean {
  const own = followed.filter(({ viewer }) => viewer.user === user);
  const open = own.filter(({ viewer }) => viewer.feed.pages > 0);
  if (open.length >= MOST_OF_USER) return false;
  for (const idle of leastUsed(own).slice(0, Math.max(0, own.length + 1 - MOST_OF_USER)))
    stopFollowing(idle, 'another viewer of the same user takes the place of this one');
  const placed = followed.filter(({ hasPlace }) => hasPlace);
  return placed.length < MOST_FOLLOWED || replaceable(placed, user) !== undefined;
}

/** Takes a place for a viewer of the user whose rights are proved. Returns false if no place is free. */
function takePlace(followed: readonly Kept[], user: string): boolean {
  const placed = followed.filter(({ hasPlace }) => hasPlace);
  if (placed.length < MOST_FOLLOWED) return true;
  const replaced = replaceable(placed, user);
  if (replaced === undefined) return false;
  stopFollowing(replaced, 'another viewer takes the place of this one');
  replaced.viewer.feed.end();
  return true;
}

/**
 * Returns the viewer whose place a viewer of the user may take: one without an open page, or else one of the user with the most places, if
 * this user then still has as many places as the other.
 */
function replaceable(placed: readonly Kept[], user: string): Kept | undefined {
  const [idle] = leastUsed(placed);
  if (idle) return idle;
  const byUser = Map.groupBy(placed, ({ viewer }) => viewer.user);
  const [most = []] = [...byUser.values()].toSorted((a, b) => b.length - a.length);
  const own = byUser.get(user)?.length ?? 0;
  return most.length > own + 1 ? most[0] : undefined;
}

/** Returns the viewers without an open page, the least recently used first. */
function leastUsed(viewers: readonly Kept[]): Kept[] {
  return viewers
    .filter(({ viewer }) => viewer.feed.pages === 0)
    .toSorted((a, b) => a.usedAt - b.usedAt);
}

/** Checks the tokens of open pages, and stops following the plans for viewers who have closed their pages. */
async function checkPages(
  followed: readonly Kept[],
  find: Viewers['find'],
  now: number,
): Promise<void> {
  for (const each of followed) {
    if (each.viewer.feed.pages > 0) {
      each.usedAt = now;
      await find(each.token);
    } else if (now - each.usedAt > LINGER_MS) {
      stopFollowing(each, 'no page is open');
    }
  }
}

/**
 * Settles like `work`. The work counts as a test of the viewer's rights until it calls `onListed`, and its signal aborts if the test takes
 * too long.
 */
async function afterTest(
  { testing }: Place,
  clock: Clock,
  abort: AbortSignal,
  work: (until: AbortSignal, onListed: () => void) => Promise<void>,
): Promise<void> {
  const listed = Promise.withResolvers<void>();
  const slow = new AbortController();
  const started = await testing(async () => {
    abort.throwIfAborted();
    const tooSlow = new Error('the API server has not answered the lists in time');
    const cancel = clock.schedule(TEST_MS, () => slow.abort(tooSlow));
    const working = work(AbortSignal.any([abort, slow.signal]), listed.resolve);
    await Promise.race([listed.promise, working]).finally(cancel);
    return { working };
  });
  await started.working;
}

/** What a viewer sees before the plans were read. */
const NOTHING_SEEN: Seen = {
  status: { leader: { state: 'unknown' }, plans: [] },
  rollouts: [],
  missing: [],
};

const NO_KIND = 'The cluster has no kind of plan that Refit knows.';
const NO_PLACE = 'The plans are already followed for too many viewers: try again later.';

/** Ends an attempt to follow the plans for a viewer who gets no place. `missing` has the sentences that say why. */
class NothingToFollow extends Error {
  readonly missing: readonly string[];

  constructor(missing: readonly string[]) {
    super(missing.join(' '));
    this.missing = missing;
  }
}

/** Returns the sentences that say why the plans cannot be followed. */
function reasonsOf(error: unknown): readonly string[] {
  if (error instanceof NothingToFollow) return error.missing;
  // The API server answers a list with 404 only if it does not serve the kind.
  return [isNotFound(error) ? NO_KIND : messageOf(error)];
}

function createViewer(
  { connection, modules, clock, cluster, random = Math.random }: ViewersOptions,
  { token, user }: { readonly token: string; readonly user: string },
  onRefused: () => void,
) {
  const feed = createFeed();
  const flags = { ...connection, token };
  let seen = NOTHING_SEEN;
  const shared = { allowsActions: true, viewer: user, ...defined({ cluster }) };
  const publish = (): void => feed.publish({ ...stateOf(seen, clock.now()), ...shared });
  const followOnce = async (place: Place, abort: AbortSignal): Promise<void> => {
    const missing: string[] = [];
    const onDenied = (error: unknown): void => void missing.push(messageOf(error));
    const follow = async (session: Session, onListed: () => void): Promise<void> => {
      abort.throwIfAborted();
      // A place needs memory, so a viewer who may list no kind of plan gets none.
      if (session.loaded.length === 0)
        throw new NothingToFollow(missing.length > 0 ? missing : [NO_KIND]);
      if (!place.take()) throw new NothingToFollow([NO_PLACE]);
      onListed();
      for await (const next of followPlans(session, clock, missing)) {
        const began = clock.monotonic();
        seen = { ...next, modules };
        publish();
        const spent = clock.monotonic() - began;
        await sleep(clock, Math.max(LEAST_PAUSE_MS, SHARE * spent), abort);
      }
    };
    await afterTest(place, clock, abort, async (until, onListed) => {
      const parts = { modules, clock, abort: until, onDenied };
      await inSession(flags, parts, 'refit-dashboard', async (session) => {
        await follow(session, onListed);
      });
    });
  };
  const run = async (place: Place, abort: AbortSignal): Promise<void> => {
    let failures = 0;
    while (!abort.aborted) {
      const renewed = new AbortController();
      const began = clock.monotonic();
      void sleep(clock, RENEW_MS, AbortSignal.any([abort, renewed.signal])).then(
        () => renewed.abort(new Error('all lists and watches start again')),
        () => undefined,
      );
      try {
        await followOnce(place, AbortSignal.any([abort, renewed.signal]));
      } catch (error) {
        if (isUnauthorized(error)) return onRefused();
        if (abort.aborted) return;
        if (!renewed.signal.aborted) {
          failures = clock.monotonic() - began > RENEW_MS / 2 ? 1 : failures + 1;
          place.leave();
          seen = { ...seen, missing: reasonsOf(error) };
          publish();
          const pause = backoffDelay(failures, { base: 1000, cap: 60_000, random });
          await sleep(clock, pause, abort).catch(() => undefined);
        }
      } finally {
        renewed.abort(new Error('over'));
      }
    }
  };
  const explain = (plan: string, node: string): readonly Said[] =>
    explainToPage(seen.status, plan, node, clock.now());
  const act = async (request: ActionRequest): Promise<ActionResult> => {
    // The action continues if its page is closed, because an action must not stop in the middle.
    const abort = AbortSignal.timeout(ACTION_MS);
    return await carryOut(request, flags, { modules, clock, abort });
  };
  const preview = async (text: string): Promise<ActionResult> => {
    const abort = AbortSignal.timeout(ACTION_MS);
    // The checks read every pod, and the process that serves the page carries out plans.
    const light = { ...flags, ready: false };
    return await previewText(text, light, { modules, clock, abort });
  };
  const eventsOf = askingEvents(flags, () => seen);
  const ofRun: Viewer['explainRun'] = (plan, name) => explainRun(seen, plan, name);
  return { parts: { user, feed, explain, explainRun: ofRun, eventsOf, act, preview }, run };
}

const ACTION_MS = 60_000;
const EVENTS_MS = 20_000;

/** Returns a function that reads Events with the rights of the viewer, and connects for each question. */
function askingEvents(
  flags: Parameters<typeof connect>[0],
  seen: () => Pick<Seen, 'status'>,
): AskEvents {
  return async (plan, node) => {
    using client = await connect(flags, 'refit-dashboard');
    return await eventsAboutNode(seen(), plan, node, client, AbortSignal.timeout(EVENTS_MS));
  };
}
