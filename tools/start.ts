/** The command behind `npm start`: a cluster on this machine, upgraded before the newcomer's eyes, and taken away again. */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { plans } from '../src/api/autopilot/plan.ts';
import { standardOutput } from '../src/cli/output.ts';
import { showStatus } from '../src/cli/status/command.ts';
import type { PlanView } from '../src/cli/status/view.ts';
import { DIALECTS } from '../src/dialects/registry.ts';
import { systemClock } from '../src/util/clock.ts';
import { formatDuration } from '../src/util/duration.ts';
import { EXIT, messageOf, RefitError } from '../src/util/errors.ts';
import { type Cluster, startCluster } from './cluster/cluster.ts';
import { controllerAddress } from './cluster/hosts.ts';
import { type Plane, startEmbeddedPlane, startRealPlane } from './cluster/plane.ts';
import { guardDirectory } from './controlplane/guard.ts';
import { summarize } from './start/summary.ts';
import { WaitLog } from './start/waits.ts';

const CONTROLLERS = 3;
const WORKERS = 5;
const CONCURRENT = 2;
const FROM = 'v1.36.3+k0s.0';
const TO = 'v1.36.3+k0s.2';
/** Short beside the 10 s of a real unit, long enough to see the order. */
const RESTART_DELAY_MS = 1000;

const HELP = `Usage: npm start [-- options]

Starts ${CONTROLLERS} controllers and ${WORKERS} workers as processes on this machine, each with a stand-in for k0s and an agent, applies a
plan, shows its progress and ends with a summary. Nothing is left behind.

  --real         on a real kube-apiserver and etcd, built on first use (see docs/testenv.md)
  --fail <node>  this node, such as worker2, gets a damaged download
  --help         this text
`;

interface Options {
  readonly help: boolean;
  readonly real: boolean;
  readonly fail: string | undefined;
}

function parse(args: string[]): Options {
  const nodes = [...names('controller', CONTROLLERS), ...names('worker', WORKERS)];
  try {
    const { help, real, fail } = parseArgs({
      args,
      options: { help: { type: 'boolean', short: 'h' }, real: { type: 'boolean' }, fail: { type: 'string' } },
    }).values;
    if (fail === undefined || nodes.includes(fail)) return { help: help === true, real: real === true, fail };
  } catch (error) {
    throw new RefitError('REFIT_USAGE', messageOf(error).split('. ')[0] ?? '', { cause: error });
  }
  throw new RefitError('REFIT_USAGE', `--fail takes one of ${nodes.join(', ')}`);
}

function names(role: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${role}${index + 1}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Resolves with the exit code once everything that was started is gone again. */
async function start({ real, fail }: Options, signal: AbortSignal): Promise<number> {
  const began = systemClock.monotonic();
  await using started = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-start-'));
  await mkdir(join(directory, 'pids'));
  const guard = guardDirectory(directory);
  started.defer(async () => await guard.release());
  say(
    `Starting ${real ? 'a real control plane' : 'an API server in memory'}, ${CONTROLLERS} controllers and ${WORKERS} workers…`,
  );
  const plane = await startPlane(real, directory, signal);
  started.defer(async () => await plane.stop());
  signal.throwIfAborted();
  const cluster = await startCluster({
    plane,
    directory,
    controllers: CONTROLLERS,
    workers: WORKERS,
    version: FROM,
    offers: [TO],
    restartDelayMs: RESTART_DELAY_MS,
    breakFor: fail === undefined ? [] : [fail],
  });
  started.defer(async () => await cluster.stop());
  signal.throwIfAborted();
  await cluster.startController('refit-controller');
  await cluster.client.create(plans, cluster.plan({ id: 'first-minute', version: TO, concurrent: CONCURRENT }));
  say(`Applied the plan: every node from ${FROM} to ${TO}, workers ${CONCURRENT} at a time.\n`);
  const code = await follow(cluster, plane, signal);
  if (code !== EXIT.interrupted) say(`\nIt took ${formatDuration(systemClock.monotonic() - began)} in all.`);
  return code;
}

async function startPlane(real: boolean, directory: string, signal: AbortSignal): Promise<Plane> {
  if (!real) return await startEmbeddedPlane(directory);
  const addresses = Array.from({ length: CONTROLLERS }, (_, index) => controllerAddress(index + 1));
  return await startRealPlane({ addresses, log: say, signal });
}

/** Shows what `refit status -w` shows, as the viewer, and sums up at the end. */
async function follow(cluster: Cluster, plane: Plane, signal: AbortSignal): Promise<number> {
  const waits = new WaitLog();
  let last: PlanView | undefined;
  const onLook = (views: readonly PlanView[]): void => {
    last = views[0];
    if (last) waits.note(last, systemClock.monotonic());
  };
  const flags = {
    kubeconfig: await plane.kubeconfig('viewer'),
    output: 'text',
    watch: true,
    apiPort: cluster.apiPort,
  } as const;
  const code = await showStatus(flags, {
    dialects: DIALECTS,
    clock: systemClock,
    output: standardOutput,
    signal,
    onLook,
  });
  if (last && code !== EXIT.interrupted) {
    const versions = new Map(
      await Promise.all(cluster.hosts.map(async (host) => [host.name, await host.version()] as const)),
    );
    say('');
    for (const line of summarize(last, versions, waits.lines())) say(line);
  }
  return code;
}

async function main(args: string[], signal: AbortSignal): Promise<number> {
  try {
    const options = parse(args);
    if (!options.help) return await start(options, signal);
    process.stdout.write(HELP);
    return EXIT.ok;
  } catch (error) {
    if (signal.aborted) return EXIT.interrupted;
    if (!(error instanceof RefitError)) throw error;
    process.stderr.write(`${error.line}\n`);
    return error.exitCode;
  }
}

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(name, () => interruption.abort(new Error(name)));
process.exitCode = await main(process.argv.slice(2), interruption.signal);
