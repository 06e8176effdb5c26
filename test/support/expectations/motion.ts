/**
 * Records what a test can observe of a rollout from outside: which nodes were in motion at which time, according to the
 * processes of the hosts and the reports of the nodes.
 */

export interface Interval {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Intervals by name. Events begin and end them. An interval that has not ended counts as endless. */
export class Motion {
  readonly #open = new Map<string, number>();
  readonly #closed: Interval[] = [];

  begin(name: string, at: number): void {
    if (!this.#open.has(name)) this.#open.set(name, at);
  }

  end(name: string, at: number): void {
    const from = this.#open.get(name);
    if (from === undefined) return;
    this.#open.delete(name);
    this.#closed.push({ name, from, to: at });
  }

  /** Returns the intervals in the order in which they began. */
  intervals(): Interval[] {
    const open = [...this.#open].map(([name, from]) => ({
      name,
      from,
      to: Number.POSITIVE_INFINITY,
    }));
    return [...this.#closed, ...open].toSorted((a, b) => a.from - b.from);
  }
}

/**
 * Returns the greatest number of intervals that overlap at one moment. An interval that ends when another interval
 * begins does not overlap with it.
 */
export function greatestOverlap(intervals: readonly Interval[]): number {
  const edges = intervals
    .flatMap(({ from, to }) => [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let most = 0;
  for (const { by } of edges) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
