/**
 * The untruths that are known and not mended yet. A test fails if one of them is not told any more: then its entry must
 * go.
 */

export interface KnownUntruth {
  /** What is wrong, in a few words. */
  readonly row: string;
  readonly invariant: string;
  readonly told: RegExp;
}

export const KNOWN: readonly KnownUntruth[] = [];

/** Returns the row of the known untruth that the sentence is about; undefined if it is a new one. */
export function knownRowOf(invariant: string, sentence: string): string | undefined {
  return KNOWN.find((known) => known.invariant === invariant && known.told.test(sentence))?.row;
}
