/**
 * Measures a plan over workers whose pods need time to end. It compares a plan with one worker and a plan with ten
 * workers at the same time.
 */
import type { KubeClient } from '../../src/kube/client.ts';
import { nodes } from '../../src/kube/resources.ts';
import { decodeSignal } from '../../src/signal/annotations.ts';
import type { Clock } from '../../src/util/clock.ts';
import { startController } from '../fleet/controller.ts';
import { startFleet } from '../fleet/fleet.ts';
import { workerName } from '../fleet/objects.ts';
import { rollOut } from '../fleet/rollout.ts';
import { endPods, placePods } from './kubelet.ts';

export const NODES = 10;
export const PODS = 4;
/** Milliseconds from the eviction of a pod to its end. */
export const POD_MS = 5_000;
/** Nearly zero, so that all nodes begin to drain at the same time. */
const STEP_MS = 20;
const STALL_MS = 120_000;

export interface DrainRun {
  /**
   * Milliseconds from the moment at which the first node waits for its drain to the moment at which the last node
   * continues.
   */
  readonly one: number;
  readonly many: number;
}

export interface DrainParts {
  /** The directory for all files of the run. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

export async function measureDrains(parts: DrainParts): Promise<DrainRun> {
  return { one: await drainTime(1, parts), many: await drainTime(NODES, parts) };
}

async function drainTime(
  workers: number,
  { directory, clock, abort }: DrainParts,
): Promise<number> {
  await using started = new AsyncDisposableStack();
  const stop = new AbortController();
  const fleet = await startFleet({
    workers,
    stepMs: STEP_MS,
    clock,
    random: () => 0.5,
    onRequest: () => undefined,
  });
  started.defer(async () => await fleet.stop());
  for (let index = 0; index < workers; index++)
    await placePods(fleet.client, workerName(index), PODS);
  const running = [endPods(fleet.server.caller, POD_MS, clock, stop.signal)];
  const times = new DrainTimes(clock);
  running.push(times.follow(fleet.client, stop.signal));
  started.defer(async () => {
    stop.abort();
    await Promise.all(running);
  });
  const controller = await startController(fleet, directory, clock, abort);
  started.defer(async () => await controller.stop());
  await rollOut(fleet, { concurrent: workers, stallMs: STALL_MS, clock, abort });
  return times.span();
}

/**
 * Records when nodes begin to wait for their drain and when they continue. It uses a watch from outside of the
 * controller.
 */
class DrainTimes {
  readonly #clock: Clock;
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async follow(client: KubeClient, abort: AbortSignal): Promise<void> {
    for await (const event of client.watch(nodes, { abort, timeoutSeconds: 86_400 })) {
      if (event.type !== 'MODIFIED') continue;
      const status = decodeSignal(event.object.metadata.annotations)?.status?.status;
      const now = this.#clock.monotonic();
      if (status === 'Cordoning') this.#first = Math.min(this.#first, now);
      if (status === 'ApplyingUpdate') this.#last = Math.max(this.#last, now);
    }
  }

  span(): number {
    return this.#last - this.#first;
  }
}
