/** The first value that is in a list twice; in linear time. */
export function firstRepeated<T>(values: readonly T[]): T | undefined {
  const known = new Set<T>();
  return values.find((value) => known.size === known.add(value).size);
}
