/**
 * Compares the work for a long input with the work for a short one. It measures processor time, because other work on a
 * busy machine increases neither of them.
 */

const RUNS = 3;
const MOST_ROUNDS = 5;
/** If the time is below this limit, processor time is too coarse for a comparison. */
const LEAST_MICROS = 2_000;

/**
 * Returns the factor by which the processor time of `run` grows if the size grows by the factor `times`. The result is
 * about `times` if the work is linear, and about its square if the work is quadratic. While the work looks more than
 * linear, both sizes are measured again, because a busy machine makes single runs slower, but never faster.
 */
export function growthOf(run: (size: number) => void, size: number, times: number): number {
  run(size);
  let long = Infinity;
  let short = Infinity;
  let factor = Infinity;
  for (let round = 0; round < MOST_ROUNDS && factor > 2 * times; round++) {
    long = Math.min(
      long,
      leastMicros(() => run(size * times)),
    );
    short = Math.min(
      short,
      leastMicros(() => run(size)),
    );
    factor = long / Math.max(LEAST_MICROS, short);
  }
  return factor;
}

/**
 * Returns the microseconds of processor time that `run` takes in this thread. It is the minimum of several runs,
 * because the garbage collector may run during any of them.
 */
export function leastMicros(run: () => void): number {
  const taken = Array.from({ length: RUNS }, () => {
    const before = process.threadCpuUsage();
    run();
    return process.threadCpuUsage(before).user;
  });
  return Math.min(...taken);
}
