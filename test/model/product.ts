/** Returns the Cartesian product: every combination with one element of each row, in the order of the rows. */

export function product<T>(choices: readonly (readonly T[])[]): T[][] {
  return choices.reduce<T[][]>(
    (rows, next) => rows.flatMap((row) => next.map((each) => [...row, each])),
    [[]],
  );
}
