/** Finds the known name that somebody probably meant when they wrote an unknown name. */

/** The most wrong, missing, additional or swapped characters of a misspelt name. */
const MOST_SLIPS = 2;
/** The number of characters that a name must have for each slip. Otherwise short names would resemble everything. */
const CHARACTERS_PER_SLIP = 3;

/** Returns the known name that is most similar to `wrong`, without regard to case; undefined if no name is similar. */
export function nearest(wrong: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = Math.min(MOST_SLIPS, Math.floor(wrong.length / CHARACTERS_PER_SLIP)) + 1;
  for (const name of known) {
    // A file may contain a name of any length. A name is not compared if its length alone differs too much.
    if (Math.abs(name.length - wrong.length) >= fewest) continue;
    const slips = slipsBetween(wrong.toLowerCase(), name.toLowerCase());
    if (slips >= fewest) continue;
    fewest = slips;
    best = name;
  }
  return best;
}

/** Returns the Damerau-Levenshtein distance in the variant that edits no part of the text twice. */
function slipsBetween(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const steps = [
        at(last, column) + 1,
        at(next, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
      ];
      const isSwap = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      if (row > 1 && column > 1 && isSwap) steps.push(at(beforeLast, column - 2) + 1);
      next.push(Math.min(...steps));
    }
    beforeLast = last;
    last = next;
  }
  return at(last, other.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
