/** The command behind `npm run proof:capi`: real managers of Cluster API update Machines in place through Refit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Rollouts } from '../../../src/dialects/capi/plan/machine-owners.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import { buildRefit } from '../../../tools/build/refit.ts';
import { buildControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { run } from '../../../tools/controlplane/run.ts';
import { runMain } from '../../../tools/main.ts';
import type { Outcome } from '../checks.ts';
import { conclude, parsed } from '../command.ts';
import type { InsideOptions } from './inside.ts';
import { gatherCertManager } from './managers/cert-manager.ts';
import { gatherManagers, hookTypesOf, type Minor, RELEASES } from './managers/programs.ts';
import { NEED_OWNERS, NEEDS_CERT_MANAGER, PARTS, PARTS_OF_EARLIER } from './parts/parts.ts';

const MINORS = Object.keys(RELEASES) as Minor[];
const NEWEST: Minor = '1.14';
const VERSIONS = MINORS.map((minor) => RELEASES[minor].version).join(', ');

const ROLLOUTS: readonly Rollouts[] = ['owner', 'machine'];
const USUAL_PARTS = Object.keys(PARTS).filter((part) => part !== NEEDS_CERT_MANAGER);

const HELP = `Usage: npm run proof:capi -- [--release MINOR] [--only PART,…] [--rollouts OF] [--logs FOLDER]

Builds the managers of Cluster API (${VERSIONS}), runs each release beside a real API server with
Refit's extension and agents, and updates Machines of a KubeadmControlPlane and a MachineDeployment in place. Each release runs in
namespaces of its own, where its ports are nobody else's: that needs root, or a kernel that lets users make namespaces. Nothing is
left behind.

  --release MINOR  one of ${MINORS.join(', ')}; an earlier one runs \`${PARTS_OF_EARLIER.join(',')}\` only
  --only PART,…    some of ${USUAL_PARTS.join(', ')},
                   or ${NEEDS_CERT_MANAGER}, which runs only if it is named, and builds cert-manager's controller first
  --rollouts OF    owner (default): all Machines of an owner are one plan; machine: each Machine is a plan of its own, without
                   ${NEED_OWNERS.join(',')}
  --logs FOLDER    where the logs of all processes are copied to at the end
  --help           this text
`;

interface Command {
  readonly releases: readonly Minor[];
  readonly only?: readonly string[];
  readonly rollouts: Rollouts;
  readonly logs?: string;
}

function parseCommand(args: string[]): Command | undefined {
  const text = { type: 'string' } as const;
  const help = { type: 'boolean' } as const;
  const options = { release: text, only: text, rollouts: text, logs: text, help } as const;
  const { values } = parsed(() => parseArgs({ args, options }));
  if (values.help === true) return undefined;
  const { release, only, logs } = values;
  const rollouts = ROLLOUTS.find((each) => each === (values.rollouts ?? 'owner'));
  if (rollouts === undefined)
    throw usage(`--rollouts wants ${ROLLOUTS.join(' or ')}, found "${values.rollouts}"`);
  const parts = Object.keys(PARTS);
  const wanted = only?.split(',');
  if (wanted?.every((part) => parts.includes(part)) === false)
    throw usage(`--only wants ${parts.join(', ')}, or some of them with commas, found "${only}"`);
  const impossible = rollouts === 'machine' && wanted?.find((part) => NEED_OWNERS.includes(part));
  if (impossible) throw usage(`the part ${impossible} needs --rollouts owner`);
  const minor = MINORS.find((each) => each === release);
  if (release !== undefined && minor === undefined)
    throw usage(`--release wants one of ${MINORS.join(', ')}, found "${release}"`);
  const releases = minor === undefined ? MINORS : [minor];
  return {
    releases,
    rollouts,
    // The parts run in their own order, because some of them leave the cluster as only later parts can use it.
    ...(wanted !== undefined && { only: parts.filter((part) => wanted.includes(part)) }),
    ...(logs !== undefined && { logs }),
  };
}

function usage(message: string): RefitError {
  return new RefitError('REFIT_USAGE', message);
}

/** The arguments of `unshare`. Users other than root need a user namespace to make the other namespaces. */
const NAMESPACES = [
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  '--net',
  '--mount',
  '--pid',
  '--mount-proc',
  '--fork',
  '--kill-child',
];

async function demandNamespaces(): Promise<void> {
  if ((await run('unshare', [...NAMESPACES, 'ip', 'link'])).ok) return;
  throw new RefitError(
    'REFIT_TESTENV',
    'no namespaces can be made here: run this as root, with unshare (util-linux) and ip (iproute2)',
  );
}

/** Runs the builds and the proof. Only the builds need the network. Inside the namespaces there is none. */
async function prove(command: Command, directory: string, abort: AbortSignal): Promise<Outcome> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const building = { environment: process.env, log, now: () => systemClock.monotonic(), abort };
  await buildControlPlane({ log, abort });
  const refit = await buildRefit(join(directory, 'refit'), 'readable');
  const outcome = { passed: 0, failed: [] as string[] };
  for (const minor of command.releases) {
    const own = join(directory, minor);
    await mkdir(own);
    const inside: InsideOptions = {
      directory: own,
      programs: await gatherManagers(minor, building),
      ...(command.only?.includes(NEEDS_CERT_MANAGER) && {
        certManager: await gatherCertManager(building),
      }),
      types: await hookTypesOf(minor, building),
      parts: command.only ?? usualParts(minor, command.rollouts),
      refit,
      rollouts: command.rollouts,
      result: join(own, 'result.json'),
    };
    log(`Cluster API ${RELEASES[minor].version}`);
    try {
      await enter(inside, abort);
    } finally {
      if (command.logs !== undefined) await keepLogs(own, join(command.logs, minor));
    }
    const { passed, failed } = await resultOf(inside);
    outcome.passed += passed;
    outcome.failed.push(...failed.map((name) => `${minor}: ${name}`));
    await rm(own, { recursive: true, force: true });
  }
  return outcome;
}

function usualParts(minor: Minor, rollouts: Rollouts): string[] {
  if (minor !== NEWEST) return PARTS_OF_EARLIER;
  return USUAL_PARTS.filter((part) => rollouts === 'owner' || !NEED_OWNERS.includes(part));
}

async function keepLogs(directory: string, to: string): Promise<void> {
  if (existsSync(join(directory, 'logs')))
    await cp(join(directory, 'logs'), to, { recursive: true });
}

/** When the first process of the namespaces ends, so do all others. */
async function enter(options: InsideOptions, abort: AbortSignal): Promise<void> {
  const file = join(options.directory, 'inside.json');
  await writeFile(file, JSON.stringify(options));
  const child = spawn(
    'unshare',
    [...NAMESPACES, process.execPath, join(import.meta.dirname, 'inside.ts'), file],
    {
      env: { ...process.env, TMPDIR: options.directory },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const end = (): void => void child.kill('SIGKILL');
  abort.addEventListener('abort', end, { once: true });
  if (abort.aborted) end();
  await once(child, 'close');
  abort.throwIfAborted();
}

async function resultOf({ result }: InsideOptions): Promise<Outcome> {
  if (!existsSync(result)) return { passed: 0, failed: ['it ended early: see above'] };
  return JSON.parse(await readFile(result, 'utf8')) as Outcome;
}

await runMain(async (args, abort) => {
  const command = parseCommand(args);
  if (command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  await demandNamespaces();
  const started = systemClock.monotonic();
  const directory = await mkdtemp(join(tmpdir(), 'refit-proof-'));
  try {
    return conclude(await prove(command, directory, abort), started);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
