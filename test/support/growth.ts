/**
 * Compares the work for a long input with the work for a short one. It measures processor time, because other work on a
 * busy machine increases neither of them.
 */

const MOST_ROUNDS = 5;
/** If the time is below this limit, processor time is too coarse for a comparison. */
const LEAST_MICROS = 2_000;

/**
 * Returns the factor by which the processor time of `run` grows if the size grows by the factor `times`. The result is
 * about `times` if the work is linear, and about its square if the work is quadratic.
 */
export function growthOf(run: (size: number) => void, size: number, times: number): number {
  run(size);
  return costFactor(
    () => run(size * times),
    () => run(size),
    2 * times,
  );
}

/**
 * Returns how many times as much processor time `run` takes as `reference`. While the result is above `expected`, both
 * run again, because a busy machine and the garbage collector make single runs slower, but never faster.
 */
export function costFactor(run: () => void, reference: () => void, expected: number): number {
  let cost = Infinity;
  let referenceCost = Infinity;
  let factor = Infinity;
  for (let round = 0; round < MOST_ROUNDS && factor > expected; round++) {
    cost = Math.min(cost, microsOf(run));
    referenceCost = Math.min(referenceCost, microsOf(reference));
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
