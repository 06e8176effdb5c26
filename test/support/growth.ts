/**
 * Compares the work for a long input with the work for a short one. It measures processor time, because other work on a
 * busy machine increases neither of them.
 */

const RUNS = 3;
/** If the time is below this limit, processor time is too coarse for a comparison. */
const LEAST_MICROS = 2_000;

/**
 * Returns the factor by which the processor time of `run` grows if the size grows by the factor `times`. The result is
 * about `times` if the work is linear, and about its square if the work is quadratic.
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
