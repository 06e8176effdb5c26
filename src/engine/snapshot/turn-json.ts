/** Writes a snapshot as JSON, and reads it back. A turn with the copy has the same assessment and the same commands. */
import type { TargetFacts } from '../model/facts.ts';
import { withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';

/** Returns the snapshot with the facts of all targets. An assessment of a large rollout does not collect them all. */
export function withAllFacts(snapshot: Snapshot): Snapshot {
  const targets = withStages(snapshot.rollout).map(({ target }) => target);
  const facts = new Map<string, TargetFacts>();
  for (const { key } of targets) {
    const found = snapshot.facts.get(key);
    if (found) facts.set(key, found);
  }
  const { observable } = snapshot;
  const names = targets.map(({ name }) => name).filter((name) => observable?.has(name) === true);
  return { ...snapshot, facts, ...(observable && { observable: new Set(names) }) };
}

/** Writes a value that contains maps, sets or numbers without end, which JSON lacks. */
export function toJson(value: unknown, space?: number): string {
  return JSON.stringify(value, encoded, space);
}

/** Reads what `toJson` wrote. Throws SyntaxError if the text is not JSON. */
export function fromJson(text: string): unknown {
  return JSON.parse(text, decoded);
}

/**
 * The name of the only member of an object that represents a value that JSON lacks. No field of a snapshot has this
 * name.
 */
const KIND = '$refit';

function encoded(_name: string, value: unknown): unknown {
  if (value instanceof Map) return { [KIND]: 'map', entries: [...value] };
  if (value instanceof Set) return { [KIND]: 'set', entries: [...value] };
  if (typeof value === 'number' && !Number.isFinite(value))
    return { [KIND]: 'number', text: String(value) };
  return value;
}

function decoded(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, KIND)) return value;
  const { [KIND]: kind, entries = [], text = '' } = value as Encoded;
  if (kind === 'map') return new Map(entries as [unknown, unknown][]);
  if (kind === 'set') return new Set(entries);
  return kind === 'number' ? Number(text) : value;
}

interface Encoded {
  readonly [KIND]: unknown;
  readonly entries?: readonly unknown[];
  readonly text?: string;
}
