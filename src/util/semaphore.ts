/** Owns a bound on how many may do something at a time; the others wait in the order in which they came. */

export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  /** Runs `work` when there is a place for it, and settles as it does. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes straight to the next in turn, so that nobody who comes now can overtake.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
