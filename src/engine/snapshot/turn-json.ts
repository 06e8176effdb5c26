/** Writes a snapshot as JSON, and reads it back. A turn with the copy has the same assessment and the same commands. */
import type { Snapshot } from '../model/snapshot.ts';
import { withReasonRead } from '../reasons/recorded.ts';
import { type FlatSnapshot, fromFlat } from './flat-snapshot.ts';
import { lookupOf, type StoredTargets, storedTargets } from './stored-targets.ts';

/** A snapshot that is plain data. It has no snapshot of the plan that would roll the run back. */
export interface StoredSnapshot extends Omit<Snapshot, 'targets'> {
  readonly targets: StoredTargets;
}

/** Returns the snapshot with all facts of all targets. */
export function storedSnapshot(snapshot: Snapshot): StoredSnapshot {
  const { rollout, plan, targets } = snapshot;
  return {
    ...snapshot,
    plan: { ...plan, ofRollBack: undefined },
    targets: storedTargets(rollout, targets),
  };
}

/** Returns the snapshot that `fromJson` has read. Its type is not checked. */
export function snapshotFrom(stored: StoredSnapshot | FlatSnapshot): Snapshot {
  const { rollout, targets, ...parts } = 'facts' in stored ? fromFlat(stored) : stored;
  // The file of an earlier release has only the sentence of the reason.
  return { ...parts, rollout: withReasonRead(rollout), targets: lookupOf(targets) };
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
