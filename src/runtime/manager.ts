/** Starts and stops the parts of a controller process in order: caches, then work, then work that only the leader does. */
import { type Election, NOT_RELEASED } from '../kube/election/election.ts';
import type { Term } from '../kube/election/write-guard.ts';
import type { Informer } from '../kube/watch/informer.ts';
import { sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { Tools } from '../util/tools.ts';
import { aborted } from '../util/waits.ts';
import { type Controller, type ControllerParts, DEFAULT_PARTS, runController } from './controller.ts';
import type { Metrics } from './metrics.ts';

type Candidacy = Pick<Election, 'name' | 'onChange' | 'refusal' | 'run'>;

export interface ManagerOptions extends ControllerParts {
  /** Without one the process always leads. */
  readonly election?: Candidacy;
}

/** Milliseconds that each group may take to stop: the kubelet kills a pod after 30 s. */
const STOP_WITHIN_MS = 20_000;

/** `always`: from synced caches to the end. `leading`: while the lease is held. */
type When = 'always' | 'leading';

export class Manager {
  readonly #election: Candidacy | undefined;
  readonly #parts: Required<ControllerParts>;
  readonly #informers = new Set<Informer>();
  readonly #runnables: Readonly<Record<When, Runnable[]>> = { always: [], leading: [] };

  constructor({ election, ...parts }: ManagerOptions = {}) {
    this.#election = election;
    this.#parts = { ...DEFAULT_PARTS, ...parts };
  }

  /** Call before `run`. `addController` adds the informers of its sources. */
  addInformer(informer: Informer): void {
    this.#informers.add(informer);
  }

  addController(controller: Controller): void {
    for (const { informer } of controller.sources) this.addInformer(informer);
    const run = async (abort: AbortSignal): Promise<void> => await runController(controller, abort, this.#parts);
    this.addRunnable({ name: controller.name, run }, 'leading');
  }

  addRunnable(runnable: Runnable, when: When = 'always'): void {
    this.#runnables[when].push(runnable);
  }

  /** The plurals of what is not synced yet, and why the server refuses the lease. */
  waitingFor(): string[] {
    const refusal = this.#election?.refusal();
    const unsynced = [...this.#informers]
      .filter((informer) => !informer.synced())
      .map(({ resource }) => resource.plural);
    return refusal ? [...unsynced, `lease ${this.#election?.name} (${refusal.message})`] : unsynced;
  }

  /** Runs until `abort`, and stops in the opposite order. Rejects if a part failed or did not stop in time: end the process then. */
  async run(abort: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const stop = AbortSignal.any([abort, failed.signal]);
    const parts = { ...this.#parts, onFailure: (error: unknown) => failed.abort(error) };
    const [informers, always] = [new Group(parts), new Group(parts)];
    const leading = new Leadership({ ...parts, election: this.#election, runnables: this.#runnables.leading });
    for (const informer of this.#informers) {
      informers.start({ name: informer.resource.plural, run: async (end) => await informer.run(end) });
    }
    if (await this.#synced(stop)) {
      for (const runnable of this.#runnables.always) always.start(runnable);
      leading.start();
      await aborted(stop);
    }
    for (const group of [leading, always, informers]) await group.stop().catch(parts.onFailure);
    if (failed.signal.aborted) throw failed.signal.reason;
  }

  /** False if the manager must stop before every cache is synced. */
  async #synced(stop: AbortSignal): Promise<boolean> {
    try {
      await Promise.all([...this.#informers].map(async (informer) => await informer.whenSynced(stop)));
    } catch (error) {
      if (stop.aborted) return false;
      throw error;
    }
    this.#parts.log.info('caches are synced', { informers: this.#informers.size });
    return true;
  }
}

export interface LeadershipParts extends GroupParts {
  /** Absent where this process is always the leader. */
  readonly election: Candidacy | undefined;
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
    await this.#turn.catch((error: unknown) => {
      this.#resign.abort(NOT_RELEASED);
      throw error;
    });
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

/** `run` must end soon after `abort`. */
export interface Runnable {
  readonly name: string;
  run(abort: AbortSignal): Promise<void>;
}

export interface GroupParts extends Pick<Tools, 'clock' | 'log'> {
  /** Called if a part fails before the group stops. */
  readonly onFailure: (error: unknown) => void;
}

export class Group {
  readonly #parts: GroupParts;
  readonly #stopping = new AbortController();
  readonly #running = new Map<Runnable, Promise<void>>();

  constructor(parts: GroupParts) {
    this.#parts = parts;
  }

  start(runnable: Runnable): void {
    const running = this.#run(runnable).finally(() => this.#running.delete(runnable));
    this.#running.set(runnable, running);
  }

  /** Rejects if a part still runs after the time limit. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopping'));
    const ended = new AbortController();
    const all = Promise.all(this.#running.values()).then(() => ended.abort());
    await Promise.race([all, sleep(this.#parts.clock, STOP_WITHIN_MS, ended.signal).catch(() => undefined)]);
    if (ended.signal.aborted) return;
    const names = [...this.#running.keys()].map(({ name }) => name).join(', ');
    throw new Error(`not stopped within ${STOP_WITHIN_MS / 1000} s: ${names}`);
  }

  async #run(runnable: Runnable): Promise<void> {
    const { log, onFailure } = this.#parts;
    try {
      await runnable.run(this.#stopping.signal);
    } catch (error) {
      log.error('a part of the process failed', { part: runnable.name, problem: messageOf(error) });
      if (!this.#stopping.signal.aborted) onFailure(error);
    }
  }
}
