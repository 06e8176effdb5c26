/**
 * Runs and measures a plan over a whole fleet. The controller runs as it is shipped, in its own process. Everything
 * else runs in this process.
 */
import type { Clock } from '../../src/util/clock.ts';
import { cpuSecondsOf, type Memory, memoryOf } from '../../test/support/processes.ts';
import { startController } from '../fleet/controller.ts';
import { startFleet } from '../fleet/fleet.ts';
import { type Rollout, rollOut } from '../fleet/rollout.ts';
import { StatusBytes, type StatusTally } from '../fleet/tally.ts';

export const WORKERS = 15_000;
/** One worker in ten is upgraded at the same time. */
const SHARE = 10;
/**
 * The mean duration in milliseconds of each of the three steps of a node that take time. A node works for about ten
 * seconds.
 */
const STEP_MS = 3_000;
/** The most milliseconds between two changes of the plan. */
const STALL_MS = 20 * 60_000;

export interface ScaleRun extends Rollout {
  readonly controller: Memory;
  /** The percentage of a core that the controller used while the plan ran. */
  readonly controllerCpu: number;
  readonly plan: StatusTally;
  readonly shards: StatusTally;
  /**
   * The average number of events that an agent received. `eventsOfOthers` is the number of events of other objects that
   * all agents received.
   */
  readonly eventsPerAgent: number;
  readonly eventsOfOthers: number;
  /** The number of requests of all kinds, without watches. */
  readonly requests: number;
}

export interface ScaleParts {
  /** The directory for all files of the run. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly workers?: number;
}

export async function measureScale(
  parts: ScaleParts,
  say: (line: string) => void,
): Promise<ScaleRun> {
  const { clock, abort, directory, workers = WORKERS } = parts;
  await using started = new AsyncDisposableStack();
  const status = new StatusBytes();
  let requests = 0;
  say(`starting ${workers} agents`);
  const fleet = await startFleet({
    workers,
    stepMs: STEP_MS,
    clock,
    random: Math.random,
    onRequest: (record) => {
      if (record.verb !== 'watch') requests++;
      status.note(record);
    },
  });
  started.defer(async () => await fleet.stop());
  const controller = await startController(fleet, directory, clock, abort);
  started.defer(async () => await controller.stop());
  say('carrying out the plan');
  requests = 0;
  const before = await cpuSecondsOf(controller.pid);
  const rollout = await rollOut(fleet, {
    concurrent: workers / SHARE,
    stallMs: STALL_MS,
    clock,
    abort,
  });
  const cpuSeconds = (await cpuSecondsOf(controller.pid)) - before;
  const events = [...fleet.events.values()];
  return {
    ...rollout,
    controller: await memoryOf(controller.pid),
    controllerCpu: (100 * cpuSeconds) / rollout.wallSeconds,
    plan: status.of('plan'),
    shards: status.of('status shards'),
    eventsPerAgent: events.reduce((sum, { own }) => sum + own, 0) / events.length,
    eventsOfOthers: events.reduce((sum, { others }) => sum + others, 0),
    requests,
  };
}
