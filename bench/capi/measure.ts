/**
 * Measures the update of a fleet of Machines in place. It calls every hook over TLS as a manager does, and runs the
 * extension as it is shipped.
 */
import {
  askUpdate,
  askWhatIsLeft,
  type ManagerOptions,
  writeDesired,
} from '../../sandbox/cluster/machine-manager.ts';
import { createMachine, installMachines, joinNode } from '../../sandbox/cluster/machines.ts';
import { nodes } from '../../src/kube/resources.ts';
import { encodePresence } from '../../src/signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../src/signal/names.ts';
import { type Clock, rfc3339, sleep } from '../../src/util/clock.ts';
import { semaphore } from '../../src/util/waits.ts';
import { cpuSecondsOf, memoryOf } from '../../test/support/processes.ts';
import { type Fleet, startFleet } from '../fleet/fleet.ts';
import { workerName } from '../fleet/objects.ts';
import { startExtension } from './extension.ts';

export const MACHINES = 1_000;
/** One Machine in ten is updated at the same time. */
const SHARE = 10;
/** The mean duration in milliseconds of each of the three steps of a node that take time. */
const STEP_MS = 3_000;
/** The most calls at the same time. A manager of Cluster API has ten workers by default. */
const WORKERS = 10;
/**
 * The milliseconds between two calls. They may be fewer than the answer of the extension asks for, because Cluster API
 * also calls when an object changes.
 */
const ASK_AGAIN_MS = 2_000;
const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.4+k0s.0';

export interface MachineRun {
  readonly machines: number;
  /** The number of Machines that were updated at the same time. */
  readonly concurrent: number;
  /** Seconds from the first call to the last answer. */
  readonly wallSeconds: number;
  /** The largest memory of the extension during the run, in MiB. The extension serves the hooks and leads. */
  readonly peakRss: number;
  readonly cpuSeconds: number;
  /** The number of calls of CanUpdateMachine and UpdateMachine. */
  readonly calls: number;
  /** The number of calls of UpdateMachine without an answer. The manager repeats such calls. */
  readonly unanswered: number;
}

export interface MachineParts {
  /** The directory for all files of the run. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly machines?: number;
  /** The number of Machines that are updated at the same time. The default is one in ten. */
  readonly concurrent?: number;
  readonly stepMs?: number;
}

export async function measureMachines(
  parts: MachineParts,
  say: (line: string) => void,
): Promise<MachineRun> {
  const { directory, clock, abort, machines = MACHINES, stepMs = STEP_MS } = parts;
  const concurrent = parts.concurrent ?? Math.ceil(machines / SHARE);
  await using started = new AsyncDisposableStack();
  say(`starting ${machines} agents of Machines`);
  const fleet = await startFleet({
    workers: machines,
    stepMs,
    clock,
    random: Math.random,
    onRequest: () => undefined,
  });
  started.defer(async () => await fleet.stop());
  await createMachines(fleet, machines, clock);
  const extension = await startExtension(fleet, directory, clock, abort);
  started.defer(async () => await extension.process.stop());
  say('updating the Machines in place');
  const counts = { calls: 0, unanswered: 0 };
  const manager: ManagerOptions = {
    client: fleet.client,
    caller: extension.caller,
    clock,
    abort,
    onCall: (answer) => {
      counts.calls++;
      if (answer instanceof Error) counts.unanswered++;
    },
  };
  const { pid } = extension.process;
  const cpuBefore = await cpuSecondsOf(pid);
  const began = clock.monotonic();
  const waiting = Array.from({ length: machines }, (_, index) => machineName(index)).values();
  const inTurn = semaphore(WORKERS);
  await Promise.all(
    Array.from({ length: concurrent }, async () => {
      for (const machine of waiting) {
        await updateOne(manager, machine, inTurn);
        counts.calls++;
      }
    }),
  );
  return {
    machines,
    concurrent,
    wallSeconds: (clock.monotonic() - began) / 1000,
    peakRss: (await memoryOf(pid)).peak,
    cpuSeconds: (await cpuSecondsOf(pid)) - cpuBefore,
    ...counts,
  };
}

/** Runs the work when one of the manager's workers is free. */
type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

async function updateOne(manager: ManagerOptions, machine: string, inTurn: InTurn): Promise<void> {
  const wanted = { machine, version: TO };
  const { uncovered, message } = await inTurn(async () => await askWhatIsLeft(manager, wanted));
  if (uncovered.length > 0) throw new Error(`${machine} would be replaced: ${message ?? ''}`);
  await writeDesired(manager, wanted);
  for (;;) {
    const answer = await inTurn(async () => await askUpdate(manager, wanted));
    if (!(answer instanceof Error) && answer.retryAfterSeconds === 0) return;
    await sleep(manager.clock, ASK_AGAIN_MS, manager.abort);
  }
}

function machineName(index: number): string {
  return `machine-${index}`;
}

async function createMachines(fleet: Fleet, count: number, clock: Clock): Promise<void> {
  const { client } = fleet;
  await installMachines(client, clock);
  const presence = encodePresence({ version: '1.0.0', since: rfc3339(clock.now()) });
  const metadata = { annotations: { [AGENT_ANNOTATION]: presence } };
  for (let index = 0; index < count; index++) {
    const machine = { name: machineName(index), version: FROM, node: workerName(index) };
    await client.patch(nodes, machine.node, { metadata }, { type: 'merge' });
    await joinNode(client, machine);
    await createMachine(client, machine);
  }
}
