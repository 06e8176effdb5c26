/** Builds a new manager whenever leadership is gained or lost. The work of the old manager is aborted. */
import { messageOf } from '../../../../src/util/errors.ts';
import { Candidate, type CandidateParts } from './lease-election.ts';
import type { Manager } from './manager.ts';

/**
 * Builds a manager that ends with the signal. Rejects if its start fails; then there is no manager until the next
 * change of leadership.
 */
export type Build = (leads: boolean, abort: AbortSignal) => Promise<Manager>;

export class Turns {
  readonly #parts: CandidateParts;
  readonly #build: Build;
  readonly #abort: AbortSignal;
  readonly #candidate: Candidate;
  #current:
    | { readonly stop: AbortController; readonly manager: Manager; readonly leads: boolean }
    | undefined;
  #changes: Promise<void> = Promise.resolve();
  #standing: Promise<void> = Promise.resolve();

  /** Everything ends when `signal` aborts, except the candidate's release of the Lease. */
  constructor(parts: CandidateParts, build: Build, abort: AbortSignal) {
    this.#parts = parts;
    this.#build = build;
    this.#abort = abort;
    this.#candidate = new Candidate(parts, (leads) => this.#turn(leads));
  }

  start(): void {
    this.#turn(false);
    this.#standing = this.#candidate.run(this.#abort);
  }

  /**
   * `starting` until the present manager runs its controllers. Then `leading` if it is the manager of a leader, and
   * `pending` otherwise.
   */
  get state(): 'starting' | 'pending' | 'leading' {
    if (this.#current?.manager.begun !== true) return 'starting';
    return this.#current.leads ? 'leading' : 'pending';
  }

  /** Releases the Lease if this process leads. Call it after the signal has aborted. */
  async release(): Promise<void> {
    await this.#standing;
    await this.#candidate.release();
  }

  /** Resolves when nothing is running any more. Call it after the signal has aborted. */
  async ended(): Promise<void> {
    await this.#standing;
    await this.#changes;
    await this.#current?.manager.ended();
  }

  #turn(leads: boolean): void {
    this.#changes = this.#changes.then(async () => {
      this.#current?.stop.abort(new Error('the manager is built anew'));
      await this.#current?.manager.ended();
      this.#current = undefined;
      if (this.#abort.aborted) return;
      const stop = new AbortController();
      try {
        const manager = await this.#build(leads, AbortSignal.any([this.#abort, stop.signal]));
        this.#current = { stop, manager, leads };
      } catch (error) {
        this.#parts.log.error('the manager does not start', { problem: messageOf(error) });
      }
    });
  }
}
