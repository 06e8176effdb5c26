/** Limits how many tasks run at a time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  /** Runs `work` when a place is free, and settles as it does. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes straight to the next in line, so that no later caller overtakes it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
