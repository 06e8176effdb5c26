/** Runs the work that only a leader does: from the moment the lease is won until it is lost or released. */
import type { Election } from '../kube/election/election.ts';
import type { Term } from '../kube/election/write-guard.ts';
import { Group, type GroupParts, type Runnable } from './group.ts';
import type { Metrics } from './metrics.ts';

export interface LeadershipParts extends GroupParts {
  /** Absent where this process is always the leader. */
  readonly election: Election | undefined;
  readonly runnables: readonly Runnable[];
  readonly metrics: Metrics;
}

export class Leadership {
  readonly #parts: LeadershipParts;
  readonly #resign = new AbortController();
  #group: Group | undefined;
  #candidacy: Promise<void> | undefined;
  /** Runs starts and stops one after the other: a new term waits until the work of the last one has ended. */
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: LeadershipParts) {
    this.#parts = parts;
  }

  start(): void {
    const { election, metrics } = this.#parts;
    if (!election) return this.#change({ number: 0 });
    metrics.leading(election.name, false);
    election.onChange((term) => this.#change(term));
    this.#candidacy = election.run(this.#resign.signal);
  }

  /** Stops the work, then releases the lease. Rejects when the work does not stop in time; then the lease expires by itself. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#change(undefined);
    await this.#turn;
    this.#resign.abort(new Error('stopping'));
    await this.#candidacy;
  }

  #change(term: Term | undefined): void {
    const { election, metrics, onFailure } = this.#parts;
    if (election) metrics.leading(election.name, term !== undefined);
    const turn = this.#turn.then(async () => (term ? this.#begin() : await this.#end()));
    turn.catch(onFailure);
    this.#turn = turn;
  }

  #begin(): void {
    if (this.#stopped) return;
    const group = new Group(this.#parts);
    this.#group = group;
    for (const runnable of this.#parts.runnables) group.start(runnable);
  }

  async #end(): Promise<void> {
    const group = this.#group;
    this.#group = undefined;
    await group?.stop();
  }
}
