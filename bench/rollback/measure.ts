/**
 * Measures a plan over a fleet, and then the rollback with `refit rollback`. Both run one after the other on the same
 * rig.
 */
import { join } from 'node:path';
import { plans } from '../../src/api/autopilot/plan.ts';
import { kubeletVersionOf, nodes } from '../../src/kube/resources.ts';
import type { Clock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { run } from '../../tools/controlplane/run.ts';
import { startController } from '../fleet/controller.ts';
import { type Fleet, FROM, startFleet } from '../fleet/fleet.ts';
import { followToEnd, rollOut } from '../fleet/rollout.ts';

export const WORKERS = 200;
/** One worker in ten is upgraded at the same time. */
const SHARE = 10;
/** The mean duration in milliseconds of each of the three steps of a node that take time. */
const STEP_MS = 1_000;
/** The name that the API server in memory uses for the kind in its records. */
const PLANS = `${plans.plural}.${plans.group}`;
/** The most milliseconds between two changes of the plan. */
const STALL_MS = 5 * 60_000;

export interface RollbackRun {
  readonly workers: number;
  /** The seconds from the creation of each plan to its end. */
  readonly forwardSeconds: number;
  readonly backSeconds: number;
}

export interface RollbackParts {
  /** The directory for all files of the run. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
  readonly workers?: number;
  readonly stepMs?: number;
}

export async function measureRollback(
  { clock, abort, directory, workers = WORKERS, stepMs = STEP_MS }: RollbackParts,
  say: (line: string) => void,
): Promise<RollbackRun> {
  await using started = new AsyncDisposableStack();
  say(`starting ${workers} agents`);
  let createdAt: number | undefined;
  const fleet = await startFleet({
    workers,
    stepMs,
    clock,
    // A constant, so that each node takes the same time in both directions.
    random: () => 0.5,
    onRequest: ({ verb, resource, code }) => {
      if (verb === 'create' && code < 400 && resource === PLANS) createdAt = clock.monotonic();
    },
  });
  started.defer(async () => await fleet.stop());
  const controller = await startController(fleet, directory, clock, abort);
  started.defer(async () => await controller.stop());
  const limits = { stallMs: STALL_MS, clock, abort };
  say('carrying out the plan');
  const forward = await rollOut(fleet, { ...limits, concurrent: Math.ceil(workers / SHARE) });
  say('going back');
  createdAt = undefined;
  await rollBack(directory, abort);
  const startedAt = createdAt ?? fail('nobody saw the Plan that goes back');
  const created = await fleet.client.get(plans, 'autopilot');
  const back = await followToEnd(fleet.client, { created, startedAt }, limits);
  await checkVersions(fleet);
  return { workers, forwardSeconds: forward.wallSeconds, backSeconds: back.wallSeconds };
}

/** Runs the command as it is shipped, from the directory into which the controller was built. */
async function rollBack(directory: string, abort: AbortSignal): Promise<void> {
  const args = ['rollback', 'autopilot', '--yes', '--reason', 'benchmark'];
  const download = [
    '--url',
    'linux-amd64=https://downloads.example.com/k0s-old',
    '--sha256',
    `linux-amd64=${'0'.repeat(64)}`,
  ];
  const connection = ['--kubeconfig', join(directory, 'kubeconfig.json')];
  const command = join(directory, 'refit', 'refit.js');
  const all = [command, ...args, ...download, ...connection];
  const { ok, stderr } = await run(process.execPath, all, { abort });
  if (!ok) fail(`refit rollback failed: ${stderr}`);
}

async function checkVersions({ client }: Fleet): Promise<void> {
  const { items } = await client.listAll(nodes);
  const wrong = items.filter((node) => kubeletVersionOf(node) !== FROM);
  if (wrong.length > 0) fail(`${wrong.length} nodes did not go back to ${FROM}`);
}

function fail(message: string): never {
  throw new RefitError('REFIT_PLAN_FAILED', message);
}
