/** Runs the drains of many nodes at the same time. */

import { isForbidden, isNotFound } from '../kube/status-error.ts';
import { sleep } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { createListeners } from '../util/listeners.ts';
import { aborted } from '../util/waits.ts';
import { within } from '../util/within.ts';
import { type DrainParts, type DrainProgress, drainNode } from './drain-node.ts';
import { DrainHandedOverError } from './eviction-requests.ts';
import { withdrawLeftRequests, withdrawRequestsFor } from './left-eviction-requests.ts';
import type { DrainOptions } from './pods.ts';
import { sharedLook } from './requests-look.ts';
import { areRequestsServed } from './requests-served.ts';

/**
 * `since` is the time at which the state began, in milliseconds since the Unix epoch. It is computed from the monotonic
 * clock, so a change of the system clock does not change how long the state has lasted.
 */
export type DrainState = DrainStage & { readonly since: number; readonly options?: DrainOptions };

type DrainStage =
  | ({ readonly kind: 'draining' } & DrainProgress)
  | { readonly kind: 'drained' }
  | { readonly kind: 'failed'; readonly reason: string };

export interface Drains {
  /**
   * Returns the state of the drain; undefined if no drain was started for `owner`, or if the drain was removed by
   * `forget` or `keep`.
   */
  readonly stateOf: (node: string, owner: string) => DrainState | undefined;
  /**
   * Ends the drain of the node, if there is one. Resolves when no eviction of pods of the node is running any more, and
   * the EvictionRequests of the node have been withdrawn. Wait for it before an uncordon. Never rejects, and does not
   * wait longer than FORGET_MS.
   */
  readonly forget: (node: string) => Promise<void>;
  /** Ends and removes all drains for which `isWanted` returns false. */
  readonly keep: (isWanted: (node: string, owner: string) => boolean) => void;
  /**
   * Starts a drain, and ends another drain of the node. Does nothing outside of a term of leadership. Also does nothing
   * if the owner already has a drain with the same options, even a failed drain; to start it again, call `forget`
   * first. If the options of the owner changed, `since` does not change.
   */
  readonly begin: (node: string, owner: string, options: DrainOptions) => void;
  /**
   * Calls the listener with the name of the node when a drain makes progress; `begin` and `forget` do not call it. The
   * returned function removes the listener.
   */
  readonly onChange: (listener: (node: string) => void) => () => void;
  /** Allows drains to start during one term of leadership. When `abort` aborts, all drains end; resolves once nothing runs. */
  readonly run: (abort: AbortSignal) => Promise<void>;
}

export interface DrainsParts extends Pick<DrainParts, 'client' | 'clock' | 'random' | 'log'> {
  /**
   * Returns true if a policy lets drains use EvictionRequests. If it returns false, EvictionRequests that an earlier
   * process left are withdrawn nevertheless. If the function is absent, Refit does not search for such
   * EvictionRequests.
   */
  readonly usesRequests?: () => boolean;
  /**
   * True if another leader continues the drains after the term. That leader also continues to use their
   * EvictionRequests.
   */
  readonly handsOver?: boolean;
}

/** The number of milliseconds between two searches for EvictionRequests that an earlier process left. */
const LEFT_REQUESTS_MS = 60_000;

/** Withdraws EvictionRequests that are left. */
interface Tidying {
  /** Returns true if requests of earlier drains may be left, or if a policy lets drains create requests. */
  readonly isDue: () => boolean;
  /**
   * Withdraws the requests at the start of the term, and then once a minute while `isDue` returns true, until `abort`
   * aborts.
   */
  readonly run: (abort: AbortSignal) => Promise<void>;
  /** Withdraws all requests of this node. */
  readonly withdrawFor: (node: string, abort: AbortSignal) => Promise<void>;
}

function tidying({ client, clock, log, usesRequests }: DrainsParts): Tidying {
  // At the start of each term, Refit searches once for requests that are left, because an earlier leader may have had a
  // policy that lets drains use requests.
  let mayBeLeft = false;
  const isDue = (): boolean => mayBeLeft || usesRequests?.() === true;
  // A lasting failure is logged as a warning once in a term, not once a minute.
  let isTold = false;
  const onFailures = ([error, ...others]: readonly unknown[]): void => {
    const level = isTold ? 'debug' : 'warn';
    isTold = true;
    const text = 'EvictionRequests of an earlier drain cannot be withdrawn; trying again';
    log[level](text, { problem: messageOf(error), requests: others.length + 1 });
  };
  const look = async (abort: AbortSignal): Promise<void> => {
    try {
      // Most clusters do not serve EvictionRequests. Refit does not list EvictionRequests in such a cluster, because
      // the API server could refuse the request.
      const isServed = usesRequests?.() === true || (await areRequestsServed(client, abort));
      mayBeLeft = isServed && (await withdrawLeftRequests({ client, log, abort, onFailures })) > 0;
    } catch (error) {
      // If the API server does not serve requests, or does not allow access to them, another search would get the same
      // answer.
      if (isForbidden(error) || isNotFound(error)) mayBeLeft = false;
      log.debug('leftover EvictionRequests cannot be withdrawn', { problem: messageOf(error) });
    }
  };
  return {
    isDue,
    withdrawFor: async (node, abort) =>
      await withdrawRequestsFor(node, { client, log, abort, onFailures }),
    async run(abort) {
      mayBeLeft = usesRequests !== undefined;
      isTold = false;
      while (!abort.aborted) {
        if (isDue()) await look(abort);
        await sleep(clock, LEFT_REQUESTS_MS, abort).catch(() => undefined);
      }
    },
  };
}

/** The most milliseconds that `forget` waits. An uncordon that waits for ever would be worse than a request that is left. */
export const FORGET_MS = 15_000;

/** Resolves once no drain of the node runs any more. `running` has the drains that have not ended. */
async function ended(running: ReadonlyMap<Promise<void>, string>, node: string): Promise<void> {
  const drainsOfNode = [...running].filter(([, drained]) => drained === node);
  await Promise.all(drainsOfNode.map(([drain]) => drain));
}

/** Withdraws all requests of the node after its drains have ended. Never rejects. */
async function withdrawAfter(
  drainsEnd: Promise<void>,
  node: string,
  left: Tidying,
  { clock, log }: DrainsParts,
): Promise<void> {
  const late = new Error(`it took longer than ${formatDuration(FORGET_MS)}`);
  const withdrawn = within(clock, { ms: FORGET_MS, late }, async (abort) => {
    await drainsEnd;
    if (left.isDue()) await left.withdrawFor(node, abort);
  });
  await withdrawn.catch((error: unknown) =>
    log.warn('EvictionRequests of the node may be left', { node, problem: messageOf(error) }),
  );
}

/** Returns the reason with which drains are aborted at the end of the term. */
function endOfTerm({ handsOver }: DrainsParts): Error {
  return handsOver === true
    ? new DrainHandedOverError('another leader continues the drain')
    : new Error('the leader has stopped, and no other one continues the drain');
}

interface Entry {
  readonly owner: string;
  readonly options: DrainOptions;
  readonly ending: AbortController;
  stage: DrainStage;
  /** The time at which the stage began, in monotonic milliseconds. */
  since: number;
}

/** Returns an object that keeps the running drains in memory only. After a crash, the drains start again, which is harmless. */
export function createDrains(parts: DrainsParts): Drains {
  const { clock } = parts;
  const left = tidying(parts);
  const lookAtRequests = sharedLook(parts.client, clock);
  const entries = new Map<string, Entry>();
  const listeners = createListeners<[string]>();
  /** The keys are the drains that have not ended yet, and the values the names of their nodes. */
  const running = new Map<Promise<void>, string>();
  /** This signal aborts when this leader's term ends. It is undefined before the first term. */
  let term: AbortSignal | undefined;

  const report = (node: string, entry: Entry, stage: DrainStage): void => {
    if (entries.get(node) !== entry) return;
    if (entry.stage.kind !== stage.kind) entry.since = clock.monotonic();
    entry.stage = stage;
    listeners.call(node);
  };
  const drain = async (node: string, entry: Entry): Promise<void> => {
    const onChange = (progress: DrainProgress): void =>
      report(node, entry, { kind: 'draining', ...progress });
    const outcome = await drainNode(node, entry.options, {
      ...parts,
      lookAtRequests,
      abort: entry.ending.signal,
      onChange,
    }).then(
      () => ({ kind: 'drained' }) as const,
      (error: unknown) => ({ kind: 'failed', reason: messageOf(error) }) as const,
    );
    report(node, entry, outcome);
  };
  const stateOf = (node: string, owner: string): DrainState | undefined => {
    const entry = entries.get(node);
    if (entry?.owner !== owner) return undefined;
    return {
      ...entry.stage,
      options: entry.options,
      since: clock.now() - (clock.monotonic() - entry.since),
    };
  };
  const end = (node: string): void => {
    entries.get(node)?.ending.abort(new Error('the drain was cancelled'));
    entries.delete(node);
  };
  const forget = async (node: string): Promise<void> => {
    end(node);
    await withdrawAfter(ended(running, node), node, left, parts);
  };
  return {
    stateOf,
    forget,
    keep(isWanted) {
      for (const [node, { owner }] of entries) if (!isWanted(node, owner)) end(node);
    },
    begin(node, owner, options) {
      const known = entries.get(node);
      const own = known?.owner === owner ? known : undefined;
      if (term?.aborted !== false || (own && sameJson(own.options, options))) return;
      end(node);
      const stage: DrainStage = { kind: 'draining', left: 0 };
      const since = own?.since ?? clock.monotonic();
      const entry: Entry = { owner, options, ending: new AbortController(), stage, since };
      entries.set(node, entry);
      const draining = drain(node, entry).finally(() => running.delete(draining));
      running.set(draining, node);
    },
    onChange: (listener) => listeners.add(listener),
    async run(abort) {
      term = abort;
      const tidied = left.run(abort);
      await aborted(abort);
      const reason = endOfTerm(parts);
      for (const { ending } of entries.values()) ending.abort(reason);
      entries.clear();
      await Promise.all([...running.keys(), tidied]);
    },
  };
}
