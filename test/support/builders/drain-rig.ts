/**
 * Drains of one node in memory. The pods end only when the test ends them, and the time moves only when the test moves
 * it.
 */
import { expect } from 'vitest';
import { type DrainProgress, drainNode } from '../../../src/drain/drain-node.ts';
import { DEFAULT_DRAIN, type DrainOptions } from '../../../src/drain/pods.ts';
import { silentLogger } from '../../../src/util/log.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { PodApi } from './pod-api.ts';
import { buildPod, type PodTraits } from './pods.ts';

export interface RunningDrain {
  readonly api: PodApi;
  readonly clock: FakeClock;
  readonly progress: DrainProgress[];
  readonly stop: AbortController;
  /** The result of the drain: `drained`, or the name and the message of the error. */
  readonly done: Promise<string>;
}

export interface DrainRig {
  /** Starts a drain of `n1`, and runs it until it can't continue without time passing. */
  readonly drain: (
    pods: readonly [string, PodTraits?][],
    options?: Partial<DrainOptions>,
    prepare?: (api: PodApi) => void,
  ) => Promise<RunningDrain>;
  /** Ends every drain. Checks that no drain leaves a watch or a timer behind. */
  readonly endAll: () => Promise<void>;
}

export function drainRig(): DrainRig {
  const rigs: RunningDrain[] = [];
  return {
    drain: async (pods, options = {}, prepare = () => undefined) => {
      const api = new PodApi();
      for (const [name, traits] of pods) api.put(buildPod(name, traits));
      prepare(api);
      const rig = begin(api, { ...DEFAULT_DRAIN, ...options });
      rigs.push(rig);
      await rig.clock.advance(0);
      return rig;
    },
    endAll: async () => {
      for (const { api, clock, stop, done } of rigs.splice(0)) {
        stop.abort(new Error('the test is over'));
        await done;
        expect({ watching: api.watching, timers: clock.pending }).toEqual({
          watching: 0,
          timers: 0,
        });
      }
    },
  };
}

function begin(api: PodApi, options: DrainOptions): RunningDrain {
  const clock = new FakeClock();
  const stop = new AbortController();
  const progress: DrainProgress[] = [];
  const { signal: abort } = stop;
  const onChange = (state: DrainProgress): void => void progress.push(state);
  const parts = {
    client: api.client,
    clock,
    random: () => 0.99,
    log: silentLogger,
    abort,
    onChange,
  };
  const done = drainNode('n1', options, parts).then(
    () => 'drained',
    (error: Error) => `${error.name}: ${error.message}`,
  );
  return { api, clock, progress, stop, done };
}

/** Returns the names of the pods in the order of the eviction requests. Leaves out the namespace if it is `default`. */
export function namesOf({ api }: RunningDrain): string[] {
  return api.evictions.map(({ pod }) => pod.replace('default/', ''));
}
