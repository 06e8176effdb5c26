/**
 * Runs `npm run bench`. It measures Refit on a real control plane, and prints the measured values of which each figure
 * is made.
 */
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { controllerAddress } from '../sandbox/cluster/hosts.ts';
import { type Plane, startRealPlane } from '../sandbox/cluster/plane.ts';
import { systemClock as clock } from '../src/util/clock.ts';
import { formatDuration } from '../src/util/duration.ts';
import { EXIT, RefitError, usageError } from '../src/util/errors.ts';
import { guardDirectory } from '../tools/controlplane/guard.ts';
import { runMain } from '../tools/main.ts';
import { measureAgent } from './agent/measure.ts';
import { machineFindings } from './capi/findings.ts';
import { MACHINES, measureMachines } from './capi/measure.ts';
import { cattleFindings } from './cattle/findings.ts';
import { measureCattle, NODES } from './cattle/measure.ts';
import { compareClients } from './client/compare.ts';
import { drainFindings } from './drain/findings.ts';
import { measureDrains } from './drain/measure.ts';
import { type Findings, renderFindings, renderJson } from './figures.ts';
import { measureSurveys } from './kubeadm/measure.ts';
import { planFindings } from './plan/findings.ts';
import { measurePlan } from './plan/measure.ts';
import { CONTROLLERS, SLOTS, WORKERS } from './plan/rig.ts';
import { readyFindings } from './ready/findings.ts';
import { HEALTHY, measureReady, ROOMS } from './ready/measure.ts';
import { rollbackFindings } from './rollback/findings.ts';
import { WORKERS as FEW, measureRollback } from './rollback/measure.ts';
import { scaleFindings } from './scale/findings.ts';
import { measureGatedDecision } from './scale/gated-decision.ts';
import { WORKERS as MANY, measureScale } from './scale/measure.ts';
import { measureServer } from './server/measure.ts';
import { measureStatus } from './status/measure.ts';
import { measureUi } from './ui/measure.ts';

const PARTS = [
  'drain',
  'scale',
  'client',
  'status',
  'plan',
  'agent',
  'server',
  'cattle',
  'kubeadm',
  'capi',
  'ui',
  'rollback',
  'ready',
] as const;
type Part = (typeof PARTS)[number];

const HELP = `Usage: npm run bench [-- options] [part]…

Measures Refit on a real kube-apiserver (built on first use, see docs/internals/testenv.md): its client beside the official one, \`refit status\` beside kubectl, a
plan over ${CONTROLLERS} controllers and ${WORKERS} workers, ${SLOTS} at a time, each with an agent, and one agent by itself. On an API server in memory: drains, a
plan over ${MANY} workers, a plan over ${FEW} workers and its way back, and in-place updates of ${MACHINES} Machines of Cluster API. Beside nginx: the update
server. Beside bare Jobs: a Plan of system-upgrade-controller over ${NODES} simulated nodes. Over SSH: a survey of kubeadm hosts. Of the dashboard: the size of
its files. \`refit ready\`: planted faults, ${HEALTHY} healthy clusters, and ${ROOMS} clusters beside the real scheduler. Takes some thirty minutes; docs/internals/benchmark.md explains every figure. Nothing is left behind.

  part           only these of ${PARTS.join(', ')}
  --only <part>  the same, of one
  --json         the last line is one JSON object with all figures
  --help         this text
`;

interface Options {
  readonly help: boolean;
  readonly json: boolean;
  readonly parts: readonly Part[];
}

function parse(args: string[]): Options {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        json: { type: 'boolean' },
        only: { type: 'string' },
      },
    });
    const { help, json, only } = values;
    const wanted: readonly string[] = [...positionals, ...(only === undefined ? [] : [only])];
    const parts = PARTS.filter((part) => wanted.length === 0 || wanted.includes(part));
    if (wanted.every((name) => PARTS.some((part) => part === name)))
      return { help: help === true, json: json === true, parts };
  } catch (error) {
    throw usageError(error);
  }
  throw new RefitError('REFIT_USAGE', `the parts are ${PARTS.join(', ')}`);
}

/** Writes progress to standard error, because standard output has only the results. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Resolves when everything that the benchmark started has ended and is removed. */
async function measure(parts: readonly Part[], abort: AbortSignal): Promise<Findings> {
  await using started = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'refit-bench-'));
  const guard = guardDirectory(directory);
  started.defer(async () => await guard.release());
  await mkdir(join(directory, 'pids'));
  let plane: Promise<Plane> | undefined;
  const realPlane = async (): Promise<Plane> => {
    plane ??= startPlane(started, abort);
    return await plane;
  };
  const found: Findings[] = [];
  for (const part of parts) found.push(await measurePart(part, realPlane, directory, abort));
  return {
    figures: found.flatMap(({ figures }) => figures),
    details: found.flatMap(({ details }) => details),
  };
}

async function startPlane(started: AsyncDisposableStack, abort: AbortSignal): Promise<Plane> {
  say('starting a real control plane');
  const addresses = Array.from({ length: CONTROLLERS }, (_, index) => controllerAddress(index + 1));
  const plane = await startRealPlane({ addresses, log: say, abort });
  started.defer(async () => await plane.stop());
  return plane;
}

async function measurePart(
  part: Part,
  realPlane: () => Promise<Plane>,
  directory: string,
  abort: AbortSignal,
): Promise<Findings> {
  const parts = { directory, clock, abort };
  switch (part) {
    case 'client': {
      const plane = await realPlane();
      say('comparing the clients');
      return await compareClients(await plane.kubeconfig('admin'), abort);
    }
    case 'status': {
      const plane = await realPlane();
      say('comparing refit status with kubectl get');
      return await measureStatus({ plane, ...parts });
    }
    case 'agent': {
      const plane = await realPlane();
      say('restarting one agent’s service, and killing the agent in its downloads');
      return await measureAgent({ plane, ...parts });
    }
    case 'plan':
      return planFindings(await measurePlan({ plane: await realPlane(), ...parts }, say));
    case 'drain':
      say('draining one node, and ten at once');
      return drainFindings(await measureDrains(parts));
    case 'server':
      say('downloading from the update server and from nginx');
      return await measureServer(parts);
    case 'cattle':
      return cattleFindings(await measureCattle(parts, say));
    case 'kubeadm':
      say('surveying a hundred kubeadm hosts over SSH');
      return await measureSurveys(parts);
    case 'capi':
      return machineFindings(await measureMachines(parts, say));
    case 'ui':
      say('building the dashboard, and showing 5,000 nodes in a browser');
      return await measureUi();
    case 'rollback':
      return rollbackFindings(await measureRollback(parts, say));
    case 'ready':
      return readyFindings(await measureReady(parts, say));
    case 'scale':
      return scaleFindings(await measureScale(parts, say), measureGatedDecision(MANY));
  }
}

async function main(args: string[], abort: AbortSignal): Promise<number> {
  const { help, json, parts } = parse(args);
  if (help) {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const began = clock.monotonic();
  const findings = await measure(parts, abort);
  say(`it took ${formatDuration(clock.monotonic() - began)}\n`);
  const lines = [...renderFindings(findings), ...(json ? ['', renderJson(findings.figures)] : [])];
  process.stdout.write(`${lines.join('\n')}\n`);
  return EXIT.ok;
}

await runMain(main);
