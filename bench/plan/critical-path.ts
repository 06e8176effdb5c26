/** The shortest time in which a plan could be done: its unavoidable steps, scheduled without a moment lost. */

/** Milliseconds; of the restarts for each target, in the order in which they start. */
export interface Unavoidable {
  /** Of the first target. */
  readonly download: number;
  readonly controllers: readonly number[];
  readonly workers: readonly number[];
}

/** The first download, controllers one after the other, then workers over so many slots. */
export function criticalPath(
  { download, controllers, workers }: Unavoidable,
  slots: number,
): number {
  return download + sum(controllers) + listSchedule(workers, slots);
}

/** Milliseconds until the last is done where each one, in order, takes the slot that is free first (list scheduling). */
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
