/**
 * Starts and stops the parts of a controller process in order: caches, then work, then work that
 * only the leader does.
 */
import { setImmediate } from 'node:timers/promises';
import { type Election, NOT_RELEASED } from '../kube/election/election.ts';
import type { Term } from '../kube/election/write-guard.ts';
import type { Informer } from '../kube/watch/informer.ts';
import { sleep } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import type { BasicTools } from '../util/tools.ts';
import { aborted } from '../util/waits.ts';
import type { Metrics } from './metrics.ts';
import {
  type Controller,
  type ControllerParts,
  DEFAULT_PARTS,
  runController,
} from './run-controller.ts';

type Candidacy = Pick<Election, 'name' | 'onChange' | 'refusal' | 'run'>;

export interface ManagerOptions extends ControllerParts {
  /** Decides when this process leads. A process without an election always leads. */
  readonly election?: Candidacy;
}

/** The most milliseconds that each group of parts may take to stop. The kubelet kills a pod after 30 s. */
const STOP_WITHIN_MS = 20_000;

/**
 * Runs before the caches are synced. Parts that it starts with `start` stop together with the
 * caches, even if nothing else was started.
 */
type Preparation = (start: Start) => Promise<void>;
type Start = (runnable: Runnable) => void;

/**
 * Parts with `always` run from the moment when the caches are synced until the end. Parts with `leading` run while the
 * process holds the lease.
 */
type When = 'always' | 'leading';

/** Runs the parts of a process. Add all of them before `run`. */
export interface Manager {
  /** Adds an informer. `addController` adds the informers of its sources. */
  addInformer(informer: Informer): void;
  /**
   * Adds work that can be done while the server answers the first lists. It may add runnables, and
   * controllers whose informers were already added.
   */
  addPreparation(prepare: Preparation): void;
  /** Adds a part. The default of `when` is `always`. */
  addRunnable(runnable: Runnable, when?: When): void;
  /** Adds a controller, which works while the process leads. */
  addController(controller: Controller): void;
  /**
   * Returns the plural names of the kinds that are not synced yet. If the server refuses the lease, also returns the
   * reason.
   */
  waitingFor(): string[];
  /**
   * Runs until `abort`, and then stops in the opposite order. It rejects if a part failed or did not
   * stop in time. The caller must then end the process.
   */
  run(abort: AbortSignal): Promise<void>;
}

/** Returns a manager without parts. */
export function createManager({ election, ...given }: ManagerOptions = {}): Manager {
  const parts: Required<ControllerParts> = { ...DEFAULT_PARTS, ...given };
  const informers = new Set<Informer>();
  const preparations: Preparation[] = [];
  const runnables: Readonly<Record<When, Runnable[]>> = { always: [], leading: [] };
  const addInformer = (informer: Informer): void => void informers.add(informer);
  const addRunnable = (runnable: Runnable, when: When = 'always'): void =>
    void runnables[when].push(runnable);
  const prepared = async (start: Start): Promise<void> => {
    // The preparations wait for one turn of the event loop, so that the informers request their lists first. Loading code blocks the event
    // loop.
    await setImmediate();
    await Promise.all(preparations.map(async (prepare) => await prepare(start)));
  };
  /** Resolves with false if the manager must stop before every cache is synced. */
  const synced = async (stop: AbortSignal, start: Start): Promise<boolean> => {
    try {
      await Promise.all([
        ...[...informers].map(async (informer) => await informer.whenSynced(stop)),
        prepared(start),
      ]);
    } catch (error) {
      if (stop.aborted) return false;
      throw error;
    }
    parts.log.info('caches are synced', { informers: informers.size });
    return true;
  };
  return {
    addInformer,
    addPreparation: (prepare: Preparation): void => void preparations.push(prepare),
    addRunnable,
    addController(controller: Controller): void {
      for (const { informer } of controller.sources) addInformer(informer);
      const run = async (abort: AbortSignal): Promise<void> =>
        await runController(controller, abort, parts);
      addRunnable({ name: controller.name, run }, 'leading');
    },
    waitingFor(): string[] {
      const refusal = election?.refusal();
      const unsynced = [...informers]
        .filter((informer) => !informer.synced())
        .map(({ resource }) => resource.plural);
      return refusal ? [...unsynced, `lease ${election?.name} (${refusal.message})`] : unsynced;
    },
    async run(abort: AbortSignal): Promise<void> {
      const failed = new AbortController();
      const stop = AbortSignal.any([abort, failed.signal]);
      const group = { ...parts, onFailure: (error: unknown) => failed.abort(error) };
      const caches = groupOf(group);
      const always = groupOf(group);
      const leading = leadership({ ...group, election, runnables: runnables.leading });
      for (const informer of informers)
        caches.start({
          name: informer.resource.plural,
          run: async (end) => await informer.run(end),
        });
      if (await synced(stop, (runnable) => caches.start(runnable)).catch(group.onFailure)) {
        for (const runnable of runnables.always) always.start(runnable);
        leading.start();
        await aborted(stop);
      }
      for (const each of [leading, always, caches]) await each.stop().catch(group.onFailure);
      if (failed.signal.aborted) throw failed.signal.reason;
    },
  };
}

interface LeadershipParts extends GroupParts {
  readonly election: Candidacy | undefined;
  readonly runnables: readonly Runnable[];
  readonly metrics: Metrics;
}

/** Runs the parts that only the leader runs. */
interface Leadership {
  start(): void;
  /**
   * Stops the work, then releases the lease. It rejects if the work does not stop in time. The lease
   * then expires by itself.
   */
  stop(): Promise<void>;
}

function leadership({ election, runnables, metrics, ...parts }: LeadershipParts): Leadership {
  const resign = new AbortController();
  let group: Group | undefined;
  let candidacy: Promise<void> | undefined;
  /**
   * The last start or stop of the leader's parts. Each start or stop begins when the previous change has ended, so that
   * a new term waits until the work of the previous term has ended.
   */
  let lastChange = Promise.resolve();
  let stopped = false;
  const begin = (): void => {
    if (stopped) return;
    group = groupOf(parts);
    for (const runnable of runnables) group.start(runnable);
  };
  const change = (term: Term | undefined): void => {
    if (election) metrics.leading(election.name, term !== undefined);
    lastChange = lastChange.then(async () => {
      if (term) return begin();
      await group?.stop();
      metrics.forgetPlans();
    });
    lastChange.catch(parts.onFailure);
  };
  return {
    start(): void {
      if (!election) return change({ number: 0 });
      metrics.leading(election.name, false);
      election.onChange(change);
      candidacy = election.run(resign.signal);
    },

    async stop(): Promise<void> {
      stopped = true;
      change(undefined);
      await lastChange.catch((error: unknown) => {
        resign.abort(NOT_RELEASED);
        throw error;
      });
      resign.abort(new Error('stopping'));
      await candidacy;
    },
  };
}

/** A part of a process. `run` must end soon after `abort`. */
export interface Runnable {
  readonly name: string;
  run(abort: AbortSignal): Promise<void>;
}

interface GroupParts extends BasicTools {
  /** The group calls this function if a part fails before the group stops. */
  readonly onFailure: (error: unknown) => void;
}

/** Parts that stop together. */
interface Group {
  start(runnable: Runnable): void;
  /** Stops all parts. It rejects if a part still runs after the time limit. */
  stop(): Promise<void>;
}

function groupOf({ clock, log, onFailure }: GroupParts): Group {
  const stopping = new AbortController();
  const running = new Map<Runnable, Promise<void>>();
  const run = async (runnable: Runnable): Promise<void> => {
    try {
      await runnable.run(stopping.signal);
    } catch (error) {
      log.error('a part of the process failed', { part: runnable.name, problem: messageOf(error) });
      if (!stopping.signal.aborted) onFailure(error);
    }
  };
  return {
    start(runnable: Runnable): void {
      const ended = run(runnable).finally(() => running.delete(runnable));
      running.set(runnable, ended);
    },

    async stop(): Promise<void> {
      stopping.abort(new Error('stopping'));
      const ended = new AbortController();
      const all = Promise.all(running.values()).then(() => ended.abort());
      await Promise.race([all, sleep(clock, STOP_WITHIN_MS, ended.signal).catch(() => undefined)]);
      if (ended.signal.aborted) return;
      const names = [...running.keys()].map(({ name }) => name).join(', ');
      throw new Error(`these parts did not stop within ${STOP_WITHIN_MS / 1000} s: ${names}`);
    },
  };
}
