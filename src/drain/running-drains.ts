/** Runs the drains of many nodes at once. */
import { messageOf } from '../util/errors.ts';
import { sameJson } from '../util/json.ts';
import { aborted } from '../util/waits.ts';
import { type DrainParts, type DrainProgress, drainNode } from './drain-node.ts';
import type { DrainOptions } from './pods.ts';

/** `since` in milliseconds since the Unix epoch, so that the time from it is what the steady clock has counted. */
export type DrainState = DrainStage & { readonly since: number; readonly options?: DrainOptions };

type DrainStage =
  | ({ readonly kind: 'draining' } & DrainProgress)
  | { readonly kind: 'drained' }
  | { readonly kind: 'failed'; readonly reason: string };

export type Drains = ReturnType<typeof createDrains>;

export type DrainsParts = Pick<DrainParts, 'client' | 'clock' | 'random' | 'log'>;

interface Entry {
  readonly owner: string;
  readonly options: DrainOptions;
  readonly ending: AbortController;
  stage: DrainStage;
  /** Milliseconds by the steady clock. */
  since: number;
}

/** In memory only: after a crash the drains start again, which is harmless. */
export function createDrains(parts: DrainsParts) {
  const { clock } = parts;
  const entries = new Map<string, Entry>();
  const listeners = new Set<(node: string) => void>();
  const running = new Set<Promise<void>>();
  /** Aborts at the end of this leader's term; undefined before the first one. */
  let term: AbortSignal | undefined;

  const report = (node: string, entry: Entry, stage: DrainStage): void => {
    if (entries.get(node) !== entry) return;
    if (entry.stage.kind !== stage.kind) entry.since = clock.monotonic();
    entry.stage = stage;
    for (const listener of listeners) listener(node);
  };
  const drain = async (node: string, entry: Entry): Promise<void> => {
    const onChange = (progress: DrainProgress): void =>
      report(node, entry, { kind: 'draining', ...progress });
    const outcome = await drainNode(node, entry.options, {
      ...parts,
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
  const forget = (node: string): void => {
    entries.get(node)?.ending.abort(new Error('the drain was cancelled'));
    entries.delete(node);
  };
  return {
    /** Undefined when no drain was started for `owner`, or it was forgotten. */
    stateOf,
    forget,
    /** Forgets the others. */
    keep(isWanted: (node: string, owner: string) => boolean): void {
      for (const [node, { owner }] of entries) if (!isWanted(node, owner)) forget(node);
    },
    /** Does nothing outside of a term, or while such a drain of the owner is known: forget it first. Ends any other; the time of the owner's goes on. */
    begin(node: string, owner: string, options: DrainOptions): void {
      const known = entries.get(node);
      const own = known?.owner === owner ? known : undefined;
      if (term?.aborted !== false || (own && sameJson(own.options, options))) return;
      forget(node);
      const stage: DrainStage = { kind: 'draining', left: 0 };
      const since = own?.since ?? clock.monotonic();
      const entry: Entry = { owner, options, ending: new AbortController(), stage, since };
      entries.set(node, entry);
      const ended = drain(node, entry).finally(() => running.delete(ended));
      running.add(ended);
    },
    /** The returned function unsubscribes. `begin` and `forget` do not call the listener. */
    onChange(listener: (node: string) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** One term of leadership: drains may start until `abort`. Then all end and are forgotten; resolves once nothing runs. */
    async run(abort: AbortSignal): Promise<void> {
      term = abort;
      await aborted(abort);
      for (const node of entries.keys()) forget(node);
      await Promise.all(running);
    },
  };
}
