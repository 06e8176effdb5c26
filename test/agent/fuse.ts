/** The death of an agent before a chosen one of its effects. */

export class Fuse {
  readonly dead = new AbortController();
  effects = 0;
  readonly #at: number;

  /** Counts from 0; Infinity for an agent that lives. */
  constructor(at: number) {
    this.#at = at;
  }

  /** A promise that never settles, from the chosen effect on: what a killed process would have done next is not done. */
  async before<T>(effect: () => Promise<T>): Promise<T> {
    if (this.effects++ >= this.#at) {
      this.dead.abort();
      return await new Promise<T>(() => undefined);
    }
    return await effect();
  }
}
