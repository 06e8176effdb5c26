/** Runs the plan of the benchmark once, and returns all measured values from which the figures are computed. */
import { readFile } from 'node:fs/promises';
import type { Host } from '../../sandbox/hosts/host.ts';
import type { Clock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import type { Sighting } from '../../test/support/expectations/signal-watch.ts';
import { type Memory, memoryOf, untilAtRest } from '../../test/support/processes.ts';
import { startProcess } from '../../tools/controlplane/process.ts';
import { type CallCount, countMutatingCalls, parseAuditLog, sinceCreation } from './audit-log.ts';
import type { Unavoidable } from './critical-path.ts';
import { measureEchoes } from './echo.ts';
import type { Restart } from './restarts.ts';
import { type Rig, type RigParts, withRig } from './rig.ts';

/** The times on one host that no orchestration can avoid, in milliseconds. */
export interface HostTime extends Restart {
  readonly name: string;
  readonly role: Host['role'];
  /** The time from the request at the download server to the last byte of the answer. */
  readonly download: number;
}

export interface PlanRun {
  /** A time on the monotonic clock in milliseconds. The times of the sightings use the same clock. */
  readonly createdAt: number;
  readonly completedAt: number;
  readonly sightings: readonly Sighting[];
  /** The hosts in the order in which they were signalled. */
  readonly hosts: readonly HostTime[];
  readonly calls: readonly CallCount[];
  readonly agents: readonly Memory[];
  readonly controller: Memory;
  /** The memory of a Node.js process that does nothing. */
  readonly bareNode: Memory;
  /** The milliseconds from single writes until a watch showed them, while the plan ran. */
  readonly echoes: readonly number[];
  /**
   * The longest times without an answer, in milliseconds. `plan` has the time of the API server of each controller
   * during the plan, and `bare` the time of one API server during a restart without a plan.
   */
  readonly apiGaps: { readonly plan: readonly number[]; readonly bare: number };
}

export async function measurePlan(parts: RigParts, say: (line: string) => void): Promise<PlanRun> {
  say('starting the cluster');
  return await withRig(parts, async (rig) => {
    const { directory, clock, abort, plane } = parts;
    say('carrying out the plan');
    const times = await runWithEchoes(rig, clock, abort);
    const planGaps = rig.apiServers.map((answers) => answers.longestGap());
    say('restarting one controller by itself');
    const apiGaps = { plan: planGaps, bare: await rig.restartBare() };
    say('measuring processes at rest');
    const agents = [...rig.cluster.agents.values()].map(({ pid }) => pid);
    await untilAtRest([rig.controller.pid, ...agents], clock, abort);
    const events = parseAuditLog(await readFile(plane.auditLog ?? '', 'utf8'));
    return {
      ...times,
      apiGaps,
      sightings: rig.sightings,
      hosts: hostTimes(rig),
      calls: countMutatingCalls(sinceCreation(events, 'autopilot')),
      agents: await Promise.all(agents.map(memoryOf)),
      controller: await memoryOf(rig.controller.pid),
      bareNode: await measureBareNode(directory, clock, abort),
    };
  });
}

/** Runs the plan and measures the echoes at the same time, so that a slow machine affects both measurements. */
async function runWithEchoes(rig: Rig, clock: Clock, abort: AbortSignal) {
  const end = new AbortController();
  const [times, echoes] = await Promise.all([
    rig.runPlan().finally(() => end.abort()),
    measureEchoes(rig.cluster.client, clock, AbortSignal.any([abort, end.signal])),
  ]);
  return { ...times, echoes };
}

/**
 * Returns the times that a plan cannot avoid. Only the first download counts, because each later download happens
 * during the restarts before it.
 */
export function unavoidable(hosts: readonly HostTime[]): Unavoidable {
  const of = (role: HostTime['role']): number[] =>
    hosts.filter((host) => host.role === role).map(({ down, start }) => down + start);
  return {
    download: hosts[0]?.download ?? Number.NaN,
    controllers: of('controller'),
    workers: of('worker'),
  };
}

function hostTimes({ cluster, restarts, sightings }: Rig): HostTime[] {
  const order = new Set(sightings.map(({ name }) => name));
  return [...order].map((name) => {
    const role = cluster.hosts.find((host) => host.name === name)?.role;
    const restart = restarts.of(name);
    const served = cluster.downloads.requests.find(
      (request) => request.node === name && request.complete,
    );
    if (role === undefined || restart === undefined || served === undefined) {
      throw new RefitError('REFIT_INTERNAL', `nobody saw how ${name} downloaded and restarted`);
    }
    return { name, role, download: served.ms, ...restart };
  });
}

async function measureBareNode(
  directory: string,
  clock: Clock,
  abort: AbortSignal,
): Promise<Memory> {
  const bare = await startProcess({
    name: 'bare-node',
    command: process.execPath,
    args: ['--eval', 'setInterval(() => undefined, 1e6)'],
    directory,
    ready: () => Promise.resolve(true),
    clock,
    abort,
  });
  try {
    await untilAtRest([bare.pid], clock, abort);
    return await memoryOf(bare.pid);
  } finally {
    await bare.stop();
  }
}
