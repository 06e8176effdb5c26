/** Building a manager anew whenever leadership comes or goes; what the old one was doing is given up. */
import { messageOf } from '../../../../src/util/errors.ts';
import { Candidate, type CandidateParts } from './lease-election.ts';
import type { Manager } from './manager.ts';

/** Builds a manager that ends with the signal; rejects where its start fails, and then there is none until the next turn. */
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

  /** Everything but the candidate's last word ends when `signal` aborts. */
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

  /** Whether what belongs to the present turn is at work, and whether that is the leader's. */
  get state(): 'starting' | 'pending' | 'leading' {
    if (this.#current?.manager.begun !== true) return 'starting';
    return this.#current.leads ? 'leading' : 'pending';
  }

  /** Once the signal has aborted: whoever led gives the lease back. */
  async release(): Promise<void> {
    await this.#standing;
    await this.#candidate.release();
  }

  /** Resolves once nothing is under way; call it after the signal has aborted. */
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
