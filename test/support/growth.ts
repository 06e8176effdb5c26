/** Compares the work for a long input with that for a short one: a busy machine makes neither take more processor time. */

const RUNS = 3;
/** Below this, processor time is too coarse to compare. */
const LEAST_MICROS = 2_000;

/**
 * How many times more processor time `run` takes for `times` times the size. About `times` if the work is linear, and its
 * square if it is quadratic.
 */
export function growthOf(run: (size: number) => void, size: number, times: number): number {
  run(size);
  return (
    leastMicros(() => run(size * times)) /
    Math.max(
      LEAST_MICROS,
      leastMicros(() => run(size)),
    )
  );
}

/**
 * Microseconds of processor time that `run` takes in this thread: the least of several runs, because the collector of garbage may
 * run in any of them.
 */
export function leastMicros(run: () => void): number {
  const taken = Array.from({ length: RUNS }, () => {
    const before = process.threadCpuUsage();
    run();
    return process.threadCpuUsage(before).user;
  });
  return Math.min(...taken);
}
