/** Starts and stops the parts of a controller process in order: caches, then work, then leader-only work. */
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
  /** Without one the process always leads. */
  readonly election?: Election;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /** Milliseconds that each group may take to stop. 20 s by default: the kubelet kills a pod after 30. */
  readonly stopTimeoutMs?: number;
}

/** `always`: from synced caches to the end. `leading`: while the lease is held. */
type When = 'always' | 'leading';

export class Manager {
  readonly #options: ManagerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #informers = new Set<Informer>();
  readonly #runnables: Readonly<Record<When, Runnable[]>> = { always: [], leading: [] };

  constructor(options: ManagerOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
    this.#metrics = options.metrics ?? noMetrics;
  }

  /** Call before `run`. `addController` adds the informers of its sources. */
  addInformer(informer: Informer): void {
    this.#informers.add(informer);
  }

  /** Runs while the lease is held. */
  addController(controller: Controller): void {
    for (const { informer } of controller.sources) this.addInformer(informer);
    const parts = {
      clock: this.#clock,
      random: this.#options.random ?? Math.random,
      logger: this.#logger,
      metrics: this.#metrics,
    };
    const run = async (abort: AbortSignal): Promise<void> => await runController(controller, abort, parts);
    this.addRunnable({ name: controller.name, run }, 'leading');
  }

  addRunnable(runnable: Runnable, when: When = 'always'): void {
    this.#runnables[when].push(runnable);
  }

  /** The plurals of what is not synced yet. */
  waitingFor(): string[] {
    return [...this.#informers].filter((informer) => !informer.synced()).map(({ resource }) => resource.plural);
  }

  /** Runs until `abort`, and stops in the opposite order. Rejects if a part failed or did not stop in time: end the process then. */
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

  /** False if the manager must stop before every cache is synced. */
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
