/** Runs the drains of many nodes at once. */
import { messageOf } from '../util/errors.ts';
import { aborted } from '../util/waits.ts';
import { type DrainParts, type DrainProgress, drainNode } from './drain-node.ts';
import type { DrainOptions } from './pods.ts';

/** `since` in milliseconds since the Unix epoch, so that the time from it is what the steady clock has counted. */
export type DrainState = DrainStage & { readonly since: number };

type DrainStage =
  | ({ readonly kind: 'draining' } & DrainProgress)
  | { readonly kind: 'drained' }
  | { readonly kind: 'failed'; readonly reason: string };

/** In memory only: after a crash the drains start again, which is harmless. */
export interface Drains {
  /** Undefined when no drain was started for `owner`, or it was forgotten. */
  stateOf(node: string, owner: string): DrainState | undefined;
  /** Does nothing outside of a term, or while the owner's drain is known: forget it first. Ends another owner's drain. */
  begin(node: string, owner: string, options: DrainOptions): void;
  forget(node: string): void;
  /** The returned function unsubscribes. `begin` and `forget` do not call the listener. */
  onChange(listener: (node: string) => void): () => void;
  /** One term of leadership: drains may start until `abort`. Then all end and are forgotten; resolves once nothing runs. */
  run(abort: AbortSignal): Promise<void>;
}

export type DrainsParts = Pick<DrainParts, 'client' | 'clock' | 'random' | 'log'>;

interface Entry {
  readonly owner: string;
  readonly ending: AbortController;
  stage: DrainStage;
  /** Milliseconds by the steady clock. */
  since: number;
}

export function createDrains(parts: DrainsParts): Drains {
  const { clock } = parts;
  const entries = new Map<string, Entry>();
  const listeners = new Set<(node: string) => void>();
  const running = new Set<Promise<void>>();
  /** Undefined between terms. */
  let term: AbortSignal | undefined;

  const report = (node: string, entry: Entry, stage: DrainStage): void => {
    if (entries.get(node) !== entry) return;
    if (entry.stage.kind !== stage.kind) entry.since = clock.monotonic();
    entry.stage = stage;
    for (const listener of listeners) listener(node);
  };
  const drain = async (node: string, options: DrainOptions, entry: Entry): Promise<void> => {
    const onChange = (progress: DrainProgress): void => report(node, entry, { kind: 'draining', ...progress });
    const outcome = await drainNode(node, options, { ...parts, abort: entry.ending.signal, onChange }).then(
      () => ({ kind: 'drained' }) as const,
      (error: unknown) => ({ kind: 'failed', reason: messageOf(error) }) as const,
    );
    report(node, entry, outcome);
  };
  const stateOf: Drains['stateOf'] = (node, owner) => {
    const entry = entries.get(node);
    if (entry?.owner !== owner) return undefined;
    return { ...entry.stage, since: clock.now() - (clock.monotonic() - entry.since) };
  };
  const forget: Drains['forget'] = (node) => {
    entries.get(node)?.ending.abort(new Error('the drain was cancelled'));
    entries.delete(node);
  };
  return {
    stateOf,
    forget,
    begin(node, owner, options) {
      if (term?.aborted !== false || stateOf(node, owner)) return;
      forget(node);
      const stage: DrainStage = { kind: 'draining', left: 0 };
      const entry: Entry = { owner, ending: new AbortController(), stage, since: clock.monotonic() };
      entries.set(node, entry);
      const ended = drain(node, options, entry).finally(() => running.delete(ended));
      running.add(ended);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async run(abort) {
      term = abort;
      await aborted(abort);
      for (const node of entries.keys()) forget(node);
      await Promise.all(running);
    },
  };
}
