/** Owns the life of a controller process: caches first, then work, leader-only work by leadership, and an ordered end. */
import type { Election } from '../kube/election/election.ts';
import type { Informer } from '../kube/watch/informer.ts';
import { aborted } from '../util/abort.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import { type Logger, silentLogger } from '../util/log.ts';
import { type Controller, runController } from './controller.ts';
import { Group, type Runnable } from './group.ts';
import { Leadership } from './leadership.ts';
import { type Metrics, noMetrics } from './metrics.ts';

export interface ManagerOptions {
  /** Without one this process always counts as the leader. */
  readonly election?: Election;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** Milliseconds each group may take to stop before it is given up; 20 s where absent, within kubelet's usual 30. */
  readonly stopTimeoutMs?: number;
}

/** When something runs: `always` from synced caches to the end, `leading` only while the lease is held. */
export type When = 'always' | 'leading';

export interface Manager {
  /** Informers of controllers' sources are known already; others are named here. Before `run` only. */
  addInformer(informer: Informer): void;
  addController(controller: Controller, when?: When): void;
  addRunnable(runnable: Runnable, when?: When): void;
  /** True once every informer is synced. */
  ready(): boolean;
  /** What is not synced yet, as plurals. */
  waitingFor(): string[];
  /**
   * Starts informers, waits for them, starts the rest; ends in the opposite order when `signal` aborts. Rejects where a
   * runnable failed, or leader-only work went on after its time: then the process should end.
   */
  run(abort: AbortSignal): Promise<void>;
}

export function createManager(options: ManagerOptions = {}): Manager {
  return new GroupedManager(options);
}

class GroupedManager implements Manager {
  readonly #options: ManagerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #informers = new Set<Informer>();
  readonly #runnables: Readonly<Record<When, Runnable[]>> = { always: [], leading: [] };

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
    this.#metrics = options.metrics ?? noMetrics;
  }

  addInformer(informer: Informer): void {
    this.#informers.add(informer);
  }

  addController(controller: Controller, when: When = 'leading'): void {
    for (const { informer } of controller.sources) this.addInformer(informer);
    const parts = {
      clock: this.#clock,
      random: this.#options.random ?? Math.random,
      logger: this.#logger,
      metrics: this.#metrics,
    };
    const run = async (abort: AbortSignal): Promise<void> => await runController(controller, abort, parts);
    this.addRunnable({ name: controller.name, run }, when);
  }

  addRunnable(runnable: Runnable, when: When = 'always'): void {
    this.#runnables[when].push(runnable);
  }

  ready(): boolean {
    return this.waitingFor().length === 0;
  }

  waitingFor(): string[] {
    return [...this.#informers].filter((informer) => !informer.synced()).map(({ resource }) => resource.plural);
  }

  async run(abort: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const stop = AbortSignal.any([abort, failed.signal]);
    const parts = {
      clock: this.#clock,
      logger: this.#logger,
      stopTimeoutMs: this.#options.stopTimeoutMs ?? 20_000,
      onFailure: (error: unknown) => failed.abort(error),
    };
    const [informers, always] = [new Group(parts), new Group(parts)];
    const { election } = this.#options;
    const leading = new Leadership({ ...parts, election, runnables: this.#runnables.leading, metrics: this.#metrics });
    for (const informer of this.#informers) informers.start(asRunnable(informer));
    if (await this.#synced(stop)) {
      for (const runnable of this.#runnables.always) always.start(runnable);
      leading.start();
      await aborted(stop);
    }
    for (const group of [leading, always, informers]) await group.stop().catch(parts.onFailure);
    if (failed.signal.aborted) throw failed.signal.reason;
  }

  /** False where the manager has to stop before every cache is there. */
  async #synced(stop: AbortSignal): Promise<boolean> {
    try {
      await Promise.all([...this.#informers].map(async (informer) => await informer.whenSynced(stop)));
    } catch (error) {
      if (stop.aborted) return false;
      throw error;
    }
    this.#logger.info('caches are synced', { informers: this.#informers.size });
    return true;
  }
}

function asRunnable(informer: Informer): Runnable {
  return { name: informer.resource.plural, run: async (abort) => await informer.run(abort) };
}
