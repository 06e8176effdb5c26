/** Ends an agent before one of its effects, which a test chooses. */

export class Fuse {
  readonly dead = new AbortController();
  effects = 0;
  readonly #at: number;

  /** `at` is the index of the effect, from 0; Infinity if the agent shall not die. */
  constructor(at: number) {
    this.#at = at;
  }

  /**
   * Runs the effect. From the chosen effect on, returns a promise that never settles, so the agent does nothing that a
   * killed process would not do.
   */
  async before<T>(effect: () => Promise<T>): Promise<T> {
    if (this.effects++ >= this.#at) {
      this.dead.abort();
      return await new Promise<T>(() => undefined);
    }
    return await effect();
  }
}
