/** The first value that is in a list twice, or what `by` makes of it; in linear time. */
export function firstRepeated<T>(
  values: readonly T[],
  by = (value: T): unknown => value,
): T | undefined {
  const known = new Set<unknown>();
  return values.find((value) => known.size === known.add(by(value)).size);
}

/** Each value that is in a list more than once, in linear time. */
export function repeated<T>(values: readonly T[]): T[] {
  const known = new Set<T>();
  return [...new Set(values.filter((value) => known.size === known.add(value).size))];
}
