/**
 * Stores what each viewer may see. Each request to the API server uses the token of the viewer, and never the rights of
 * this process.
 */
import { hash } from 'node:crypto';
import type { Dialect } from '../../engine/contract/dialect.ts';
import { isUnauthorized } from '../../kube/status-error.ts';
import { backoffDelay, type Clock, sleep } from '../../util/clock.ts';
import { messageOf } from '../../util/errors.ts';
import { carryOut } from '../dashboard/actions.ts';
import { createFeed, type Feed } from '../dashboard/feed.ts';
import { followPlans } from '../dashboard/follow-plans.ts';
import { explainNode, type Seen, stateOf } from '../dashboard/make-state.ts';
import { previewText } from '../dashboard/preview.ts';
import type { ActionRequest, ActionResult, Said } from '../dashboard/state.ts';
import type { ConnectionFlags } from '../options.ts';
import { inSession } from '../status/status-session.ts';
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
/** Each viewer gets at most 1/SHARE of the time of this process, because the process also carries out plans. */
const SHARE = 40;
const LEAST_PAUSE_MS = 1000;

export interface Viewer {
  readonly user: string;
  readonly feed: Feed;
  /** Follows the plans for this viewer from now on. Returns false if the plans are already followed for too many viewers. */
  follow(): boolean;
  explain(plan: string, node: string): readonly Said[];
  act(request: ActionRequest): Promise<ActionResult>;
  /** Previews the plans that the text contains. */
  preview(text: string): Promise<ActionResult>;
}

export type FoundViewer =
  | { readonly kind: 'known'; readonly viewer: Viewer }
  | Exclude<TokenOwner, { kind: 'known' }>;

export interface ViewersOptions {
  readonly connection: Pick<ConnectionFlags, 'kubeconfig' | 'context' | 'apiPort'>;
  readonly dialects: readonly Dialect[];
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
    each?.stop?.abort(new Error('the viewer has signed out'));
    each?.viewer.feed.end();
  };
  const followed = (): Kept[] => [...kept.values()].filter(({ stop }) => stop !== undefined);
  const makeRoom = (user: string): boolean => {
    const places = followed();
    const own = places.filter(({ viewer }) => viewer.user === user);
    const isFull = own.length >= MOST_OF_USER;
    if (!isFull && places.length < MOST_FOLLOWED) return true;
    const [idle] = (isFull ? own : places)
      .filter(({ viewer }) => viewer.feed.pages === 0)
      .toSorted((a, b) => a.usedAt - b.usedAt);
    idle?.stop?.abort(new Error('another viewer takes the place of this one'));
    if (idle) idle.stop = undefined;
    return idle !== undefined;
  };
  const keep = (key: string, token: string, user: string): Viewer => {
    const known = kept.get(key);
    const now = clock.monotonic();
    if (known) {
      known.checkedAt = now;
      return known.viewer;
    }
    const [oldest] = [...kept].find(([, { stop }]) => stop === undefined) ?? [];
    if (kept.size >= MOST_KNOWN && oldest !== undefined) drop(oldest);
    const own = createViewer(options, { token, user }, () => drop(key));
    const each: Kept = {
      token,
      viewer: { ...own.parts, follow },
      checkedAt: now,
      stop: undefined,
      usedAt: now,
    };
    function follow(): boolean {
      each.usedAt = clock.monotonic();
      if (each.stop) return true;
      if (!makeRoom(user)) return false;
      each.stop = new AbortController();
      void own.run(AbortSignal.any([each.stop.signal, abort]));
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
      each.stop?.abort(new Error('no page is open'));
      each.stop = undefined;
    }
  }
}

function createViewer(
  { connection, dialects, clock, random = Math.random }: ViewersOptions,
  { token, user }: { readonly token: string; readonly user: string },
  onRefused: () => void,
) {
  const feed = createFeed();
  const flags = { ...connection, token };
  const none: Seen = {
    status: { leader: { state: 'unknown' }, plans: [] },
    rollouts: [],
    missing: [],
  };
  let seen = none;
  const publish = (): void =>
    feed.publish({ ...stateOf(seen, clock.now()), allowsActions: true, viewer: user });
  const followOnce = async (abort: AbortSignal): Promise<void> => {
    const missing: string[] = [];
    const onDenied = (error: unknown): void => void missing.push(messageOf(error));
    await inSession(
      flags,
      { dialects, clock, abort, onDenied },
      'refit-dashboard',
      async (session) => {
        for await (const next of followPlans(session, clock, missing)) {
          const began = clock.monotonic();
          seen = next;
          publish();
          const spent = clock.monotonic() - began;
          await sleep(clock, Math.max(LEAST_PAUSE_MS, SHARE * spent), abort);
        }
      },
    );
  };
  const run = async (abort: AbortSignal): Promise<void> => {
    let failures = 0;
    while (!abort.aborted) {
      const renewed = new AbortController();
      const began = clock.monotonic();
      void sleep(clock, RENEW_MS, AbortSignal.any([abort, renewed.signal])).then(
        () => renewed.abort(new Error('all lists and watches start again')),
        () => undefined,
      );
      try {
        await followOnce(AbortSignal.any([abort, renewed.signal]));
      } catch (error) {
        if (isUnauthorized(error)) return onRefused();
        if (abort.aborted) return;
        if (!renewed.signal.aborted) {
          failures = clock.monotonic() - began > RENEW_MS / 2 ? 1 : failures + 1;
          seen = { ...seen, missing: [messageOf(error)] };
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
    explainNode(seen.status, plan, node, clock.now());
  const act = async (request: ActionRequest): Promise<ActionResult> => {
    // The action continues if its page is closed, because an action must not stop in the middle.
    const abort = AbortSignal.timeout(ACTION_MS);
    return await carryOut(request, flags, { dialects, clock, abort });
  };
  const preview = async (text: string): Promise<ActionResult> => {
    const abort = AbortSignal.timeout(ACTION_MS);
    return await previewText(text, flags, { dialects, clock, abort });
  };
  return { parts: { user, feed, explain, act, preview }, run };
}

const ACTION_MS = 60_000;
