/**
 * Measures `refit status` and `kubectl get` of the same objects, in turns. It subtracts the time that the API server
 * took.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import {
  createControlNode,
  createNode,
  deleteObjects,
  examplePlan,
  installDefinitions,
} from '../../sandbox/cluster/objects.ts';
import type { Plane } from '../../sandbox/cluster/plane.ts';
import { plans } from '../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import type { Clock } from '../../src/util/clock.ts';
import { RefitError } from '../../src/util/errors.ts';
import { buildProgram } from '../../tools/build/refit.ts';
import { ensureComponents } from '../../tools/controlplane/build.ts';
import { type RunOptions, run } from '../../tools/controlplane/run.ts';
import { buildBinary } from '../../tools/release/binary.ts';
import { PLATFORMS, readLock } from '../../tools/release/node-package.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';

const CONTROLLERS = 3;
const WORKERS = 20;
/** An odd number, so that the median is a measured value. */
const ROUNDS = 11;
const NOBODY_READS = 'https://mirror.example.com/k0s';

interface StatusParts {
  readonly plane: Plane;
  /** The directory for all files of the run. The caller removes it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** The times of one round in milliseconds. */
interface StatusRound {
  readonly refit: number;
  /** The part of `refit` in which the API server worked on at least one request. */
  readonly api: number;
  /** The CPU time in `refit`. */
  readonly cpu: number;
  readonly kubectl: number;
}

/** Measures on a cluster that has a Plan over 3 controllers and 20 workers, and no leader. */
export async function measureStatus(parts: StatusParts): Promise<Findings> {
  const { plane, directory, clock, abort } = parts;
  const kubeconfig = await plane.kubeconfig('admin');
  const binary = await builtBinary(join(directory, 'status'));
  const log = (line: string): void => void process.stderr.write(`${line}\n`);
  const now = (): number => clock.monotonic();
  const tool = (await ensureComponents(['kubectl'], { environment: process.env, log, now, abort }))
    .kubectl;
  using client = createClient(await loadClusterConfig({ path: kubeconfig }));
  await using things = new AsyncDisposableStack();
  things.use(await createObjects(client, parts));
  const environment = { KUBECACHEDIR: join(directory, 'kubectl-cache') };
  const time = async (...command: readonly string[]): Promise<Measured> =>
    await timed([...command, '--kubeconfig', kubeconfig], { environment, abort }, clock);
  const status = async () => await time(binary, 'status');
  const get = async () =>
    await time(tool, 'get', 'plans.autopilot.k0sproject.io,controlnodes,nodes');
  // The first calls are not measured. They fill the cache of kinds of kubectl, and the cache of the kernel for both
  // files.
  await get();
  await status();
  const rounds: { readonly refit: Measured; readonly kubectl: Measured }[] = [];
  for (let index = 0; index < ROUNDS; index++) {
    // The order changes with each round, so that a slow machine affects both in the same way.
    const early = index % 2 === 0 ? await status() : undefined;
    const theirs = await get();
    rounds.push({ refit: early ?? (await status()), kubectl: theirs });
  }
  const requests = await requestsOf('refit-status', plane.auditLog);
  return statusFindings(
    rounds.map(({ refit, kubectl: theirs }) => ({
      refit: lengthOf(refit),
      api: covered(requests.filter(({ from, to }) => from >= refit.from && to <= refit.to)),
      cpu: refit.cpu,
      kubectl: lengthOf(theirs),
    })),
  );
}

function statusFindings(rounds: readonly StatusRound[]): Findings {
  const medianOf = (value: (round: StatusRound) => number): number => median(rounds.map(value));
  const [refit, api, cpu, theirs] = (['refit', 'api', 'cpu', 'kubectl'] as const).map(
    (part) => `${formatNumber(medianOf((round) => round[part]))} ms`,
  );
  return {
    figures: [
      {
        key: 'status.overheadMs',
        value: medianOf((round) => round.refit - round.api),
        unit: 'ms',
        goal: { bound: 'most', limit: 250 },
        madeOf: `${refit} for \`refit status\`, of it ${api} with the API server, and ${cpu} of a core; medians of ${rounds.length}`,
      },
      {
        key: 'status.cpuMs',
        value: medianOf((round) => round.cpu),
        unit: 'ms',
        madeOf:
          'user and system time of `refit status`: what is left on a machine that does nothing else',
      },
      {
        key: 'status.ratioVsKubectlGet',
        value: medianOf((round) => round.refit / round.kubectl),
        unit: '×',
        madeOf: `${refit} ÷ ${theirs} for \`kubectl get\` of the same objects`,
      },
    ],
    details: [
      {
        title: 'refit status and kubectl get, in milliseconds',
        header: ['ROUND', 'refit status', 'OF IT API SERVER', 'OF A CORE', 'kubectl get'],
        rows: rounds.map((round, index) =>
          [index + 1, round.refit, round.api, round.cpu, round.kubectl].map(formatNumber),
        ),
      },
    ],
  };
}

/** The start and the end of a period, in milliseconds since the Unix epoch. */
interface Span {
  readonly from: number;
  readonly to: number;
}

const lengthOf = ({ from, to }: Span): number => to - from;

/** Returns the milliseconds that are in at least one of the spans. */
function covered(spans: readonly Span[]): number {
  let sum = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}

interface Measured extends Span {
  readonly cpu: number;
}

/** Runs the command with bash, because Node.js does not report the CPU time of its child processes. */
async function timed(
  command: readonly string[],
  options: RunOptions,
  clock: Clock,
): Promise<Measured> {
  const from = clock.now();
  const began = clock.monotonic();
  const { ok, stderr } = await run(
    'bash',
    ['-c', 'TIMEFORMAT="%U %S"; time "$@"', 'bash', ...command],
    options,
  );
  const to = from + clock.monotonic() - began;
  const seconds = stderr.trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
  if (!ok || seconds.length !== 2)
    throw new RefitError('REFIT_INTERNAL', `${command.join(' ')} failed: ${stderr.trim()}`);
  return { from, to, cpu: 1000 * seconds.reduce((sum, each) => sum + each, 0) };
}

interface TimedEvent {
  readonly userAgent?: string;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

async function requestsOf(agent: string, auditLog = ''): Promise<Span[]> {
  const lines = (await readFile(auditLog, 'utf8')).split('\n').slice(0, -1);
  const events = lines
    .map((line) => JSON.parse(line) as TimedEvent)
    .filter((event) => event.userAgent === agent);
  return events.map(({ requestReceivedTimestamp, stageTimestamp }) => ({
    from: Date.parse(requestReceivedTimestamp),
    to: Date.parse(stageTimestamp),
  }));
}

async function builtBinary(directory: string): Promise<string> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined)
    throw new RefitError('REFIT_INTERNAL', `no binary is made for ${process.arch}`);
  const binary = `${directory}-refit`;
  await buildProgram(directory);
  await buildBinary(platform, await readLock(process.cwd()), directory, binary);
  return binary;
}

async function createObjects(
  client: KubeClient,
  { clock, abort }: StatusParts,
): Promise<AsyncDisposable> {
  await installDefinitions(client, clock, abort);
  const controllers = Array.from({ length: CONTROLLERS }, (_, index) => `status-c${index + 1}`);
  const workers = Array.from({ length: WORKERS }, (_, index) => `status-w${index + 1}`);
  for (const [index, name] of controllers.entries())
    await createControlNode(client, name, controllerAddress(index + 1));
  for (const name of workers) await createNode(client, name, { bench: 'status' });
  const release = {
    id: 'status',
    version: 'v1.36.3+k0s.2',
    url: NOBODY_READS,
    sha256: 'ab'.repeat(32),
  };
  const plan = {
    ...release,
    controllers,
    workerSelector: { labels: 'bench=status' },
    concurrent: 5,
  };
  await client.create(plans, examplePlan(plan));
  return {
    async [Symbol.asyncDispose]() {
      await client.delete(plans, 'autopilot');
      for (const name of [...controllers, ...workers]) await deleteObjects(client, name);
    },
  };
}
