/** Drains of one node in memory: pods that end only when the test says so, and time that moves only then. */
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
  /** How it ended: `drained`, or name and message of the error. */
  readonly done: Promise<string>;
}

export interface DrainRig {
  /** A drain of `n1` that has come as far as it gets without time passing. */
  readonly drain: (
    pods: readonly [string, PodTraits?][],
    options?: Partial<DrainOptions>,
    prepare?: (api: PodApi) => void,
  ) => Promise<RunningDrain>;
  /** Ends every drain: each must leave neither a watch nor a timer behind. */
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

/** Names of the pods in the order in which their eviction was asked for, those of namespace `default` without it. */
export function namesOf({ api }: RunningDrain): string[] {
  return api.evictions.map(({ pod }) => pod.replace('default/', ''));
}
