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

export const KNOWN: readonly KnownUntruth[] = [
  {
    row: 'condition Waiting: only for a free slot, although the plan is paused',
    invariant: 'stop-is-told',
    told: /^the NodeRollout tells no wait$/,
  },
  {
    row: 'after the end a node is deleted, another upgraded by hand',
    invariant: 'done-is-all',
    told: /^w\d runs (undefined|v1\.36\.4\+k0s\.0), not/,
  },
  {
    row: 'after the end a node is deleted, another upgraded by hand',
    invariant: 'told-version-runs',
    told: /^w\d is told to run v1\.36\.2\+k0s\.0, and runs v1\.36\.4/,
  },
  {
    row: 'id of a running Plan is edited',
    invariant: 'runs-are-admitted',
    told: /run-edited|^plan-1\/run-1 is not listed$/,
  },
  {
    row: 'two commands: the first one tells its own version as the present one',
    invariant: 'told-version-runs',
    told: /^\w\d is told to run v1\.36\.2\+k0s\.0, and runs v1\.36\.3/,
  },
];

/** Returns the row of the known untruth that the sentence is about; undefined if it is a new one. */
export function knownRowOf(invariant: string, sentence: string): string | undefined {
  return KNOWN.find((known) => known.invariant === invariant && known.told.test(sentence))?.row;
}
