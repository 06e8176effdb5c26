/** Finds the shortest of several durations, of which some may be undefined. */

/** Returns the shortest of these durations; undefined if all are undefined. */
export function soonest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
