/** The first value that is in a list twice, or what `by` makes of it; in linear time. */
export function firstRepeated<T>(
  values: readonly T[],
  by = (value: T): unknown => value,
): T | undefined {
  const known = new Set<unknown>();
  return values.find((value) => known.size === known.add(by(value)).size);
}
