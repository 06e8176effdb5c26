/** Computes the shortest possible time of a plan, with its unavoidable steps and no pauses between them. */

/**
 * The unavoidable times of a plan, in milliseconds. The lists have the time of the restart of each target, in the order
 * in which the restarts begin.
 */
export interface Unavoidable {
  /** The download of the first target. */
  readonly download: number;
  readonly controllers: readonly number[];
  readonly workers: readonly number[];
}

/**
 * Returns the sum of three times: the first download, the restarts of the controllers one after another, and the
 * restarts of the workers, of which `slots` run at the same time.
 */
export function criticalPath(
  { download, controllers, workers }: Unavoidable,
  slots: number,
): number {
  return download + sum(controllers) + listSchedule(workers, slots);
}

/**
 * Returns the milliseconds until the last target is done. Each target, in the given order, takes the slot that is free
 * first (list scheduling).
 */
export function listSchedule(durations: readonly number[], slots: number): number {
  const freeAt = Array.from({ length: slots }, () => 0);
  for (const duration of durations) {
    const first = freeAt.indexOf(Math.min(...freeAt));
    freeAt[first] = (freeAt[first] ?? 0) + duration;
  }
  return Math.max(...freeAt);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
