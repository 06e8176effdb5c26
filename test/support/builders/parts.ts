/** Changes parts of a snapshot, or of the input of a gate, so that a test says only what differs. */
import type { Snapshot } from '../../../src/engine/model/snapshot.ts';

const PARTS = ['plan', 'abilities', 'cluster', 'outside', 'term'] as const;
type Part = (typeof PARTS)[number];
type Parts = Pick<Snapshot, Part>;

/** Some fields of some parts. The other fields of a part stay. */
export type PartChanges<T> = {
  readonly [K in keyof T]?: K extends Part ? Partial<T[K]> : T[K];
};
export type SnapshotChanges = PartChanges<Snapshot>;

/** Returns the snapshot or the input with these changes. Later changes replace earlier ones. */
export function withParts<T extends Parts>(
  base: T,
  ...changes: readonly (PartChanges<T> | undefined)[]
): T {
  return changes.reduce<T>((changed, change) => {
    const parts = PARTS.map((part): [Part, object] => [
      part,
      { ...changed[part], ...change?.[part] },
    ]);
    return { ...changed, ...change, ...Object.fromEntries<object>(parts) };
  }, base);
}
