/**
 * Returns the first value that repeats an earlier value; undefined if no value is repeated. `by` computes what is
 * compared. It takes linear time.
 */
export function firstRepeated<T>(
  values: readonly T[],
  by = (value: T): unknown => value,
): T | undefined {
  const known = new Set<unknown>();
  return values.find((value) => known.size === known.add(by(value)).size);
}

/** Returns each value that is in the list more than once. It takes linear time. */
export function repeated<T>(values: readonly T[]): T[] {
  const known = new Set<T>();
  return [...new Set(values.filter((value) => known.size === known.add(value).size))];
}
