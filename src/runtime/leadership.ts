/** Owns leader-only work: it starts when the lease is won, stops when it is lost, and stops before it is given back. */
import type { Election } from '../kube/election/election.ts';
import type { Held } from '../kube/election/write-guard.ts';
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
  #rollout: Promise<void> | undefined;
  /** Starts and stops one after the other: a new term waits for the end of the last one's work. */
  #turn: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: LeadershipParts) {
    this.#parts = parts;
  }

  start(): void {
    const { election } = this.#parts;
    if (!election) return this.#change({ fencing: 0 });
    election.onChange((held) => this.#change(held));
    this.#rollout = election.run(this.#resign.signal);
  }

  /** Ends the work, and only then the term. Rejects where the work does not end in time; the lease then runs out. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#change(undefined);
    await this.#turn;
    this.#resign.abort(new Error('stopping'));
    await this.#rollout;
  }

  #change(held: Held | undefined): void {
    const { metrics, onFailure } = this.#parts;
    metrics.leading(held !== undefined);
    const turn = this.#turn.then(async () => (held ? this.#begin() : await this.#end()));
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
