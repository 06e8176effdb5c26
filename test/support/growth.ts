/**
 * Compares the work for a long input with the work for a short one. It measures processor time, because waiting for a
 * processor does not count there. Other work on the machine and the garbage collector still increase the processor time
 * of single runs.
 */

const MOST_ROUNDS = 5;
/** If the time is below this limit, processor time is too coarse for a comparison. */
const LEAST_MICROS = 2_000;

/**
 * Returns the factor by which the processor time of `run` grows if the size grows by the factor `times`. The result is
 * about `times` if the work is linear, and about its square if the work is quadratic. A result below `limit` is good
 * enough for the caller.
 */
export function growthOf(
  run: (size: number) => void,
  size: number,
  times: number,
  limit: number,
): number {
  run(size);
  return costFactor(
    () => run(size * times),
    () => run(size),
    limit,
  );
}

/**
 * Returns how many times as much processor time `run` takes as `reference`. While the result is not below `limit`, both
 * run again, and the shortest time of each counts. The reference runs twice in each round, so that a single slow
 * reference run cannot lower the result.
 */
export function costFactor(run: () => void, reference: () => void, limit: number): number {
  let cost = Infinity;
  let referenceCost = Infinity;
  let factor = Infinity;
  for (let round = 0; round < MOST_ROUNDS && factor >= limit; round++) {
    cost = Math.min(cost, microsOf(run));
    referenceCost = Math.min(referenceCost, microsOf(reference), microsOf(reference));
    factor = cost / Math.max(LEAST_MICROS, referenceCost);
  }
  return factor;
}

/** Returns the microseconds of processor time that `run` takes in this thread. */
function microsOf(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  return process.threadCpuUsage(before).user;
}
