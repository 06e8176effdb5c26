/** Finds the shortest of several times that may be unknown. */

/** Returns the shortest of these times; undefined if there is none. */
export function soonest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
