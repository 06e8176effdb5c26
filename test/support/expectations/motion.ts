/** What can be said of a rollout from outside: who was in motion when, by the hosts' processes and the nodes' own words. */

export interface Interval {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Intervals that begin and end with events, by name; what is still open ends never. */
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

  /** In the order of their beginnings. */
  intervals(): Interval[] {
    const open = [...this.#open].map(([name, from]) => ({
      name,
      from,
      to: Number.POSITIVE_INFINITY,
    }));
    return [...this.#closed, ...open].toSorted((a, b) => a.from - b.from);
  }
}

/** The greatest number of intervals that hold at one moment; one that ends when another begins does not overlap it. */
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
