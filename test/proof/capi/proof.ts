/** The command behind `npm run proof:capi`: real managers of Cluster API update Machines in place through Refit. */
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { messageOf, RefitError } from '../../../src/util/errors.ts';
import { buildRefit } from '../../../tools/build/refit.ts';
import { guardDirectory } from '../../../tools/controlplane/guard.ts';
import { runMain } from '../../../tools/main.ts';
import { Checks } from '../checks.ts';
import { conclude, parsed } from '../command.ts';
import { CLUSTER_API, gatherManagers } from './managers/programs.ts';
import { agentGone } from './parts/agent-gone.ts';
import { killed } from './parts/killed.ts';
import { register } from './parts/registration.ts';
import { secondCluster } from './parts/second-cluster.ts';
import { twoUpdaters } from './parts/two-updaters.ts';
import { uncovered } from './parts/uncovered.ts';
import { update } from './parts/update.ts';
import { wrongAuthority } from './parts/wrong-authority.ts';
import { makeCluster, openScene, type Scene } from './scene.ts';

/** Each leaves the cluster as the next one wants it: settled, and without an UpdaterSet. */
const PARTS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  update,
  uncovered,
  killed,
  'two-updaters': twoUpdaters,
  'wrong-authority': wrongAuthority,
  'agent-gone': agentGone,
  'second-cluster': secondCluster,
};

const HELP = `Usage: npm run proof:capi -- [--only PART,…] [--logs FOLDER]

Builds the managers of Cluster API ${CLUSTER_API}, runs them beside a real API server with Refit's extension and agents, and
updates Machines of a KubeadmControlPlane and a MachineDeployment in place. All is on loopback but the managers' webhooks and the
in-memory provider's port 19000: they have no option for it. So there can be one run at a time. Nothing is left behind.

  --only PART,…    some of ${Object.keys(PARTS).join(', ')}
  --logs FOLDER    where the logs of all processes are copied to at the end
  --help           this text
`;

interface Command {
  readonly parts: readonly string[];
  readonly logs?: string;
}

function parseCommand(args: string[]): Command | undefined {
  const options = { only: { type: 'string' }, logs: { type: 'string' }, help: { type: 'boolean' } } as const;
  const { only, logs, help } = parsed(() => parseArgs({ args, options })).values;
  if (help === true) return undefined;
  const parts = Object.keys(PARTS);
  const wanted = only?.split(',') ?? parts;
  if (!wanted.every((part) => parts.includes(part)))
    throw new RefitError(
      'REFIT_USAGE',
      `--only wants ${parts.join(', ')}, or some of them with commas, found "${only}"`,
    );
  return { parts: wanted, ...(logs !== undefined && { logs }) };
}

async function prove({ parts, logs }: Command, directory: string, abort: AbortSignal): Promise<Checks> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const checks = new Checks(log);
  const now = (): number => systemClock.monotonic();
  const begun = now();
  const programs = await gatherManagers({ environment: process.env, log, now, abort });
  const refit = await buildRefit(join(directory, 'refit'), 'readable');
  await using started = new AsyncDisposableStack();
  const guard = guardDirectory(directory);
  started.defer(async () => await guard.release());
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
  if (logs !== undefined) started.defer(async () => await cp(join(directory, 'logs'), logs, { recursive: true }));
  const scene = await openScene({ directory, programs, refit, checks, log, abort }, started);
  await register(scene);
  await checks.check('a cluster of 3 + 2 Machines is there, with Nodes on the real API server', async () => {
    await makeCluster(scene);
    return [];
  });
  for (const part of parts) {
    abort.throwIfAborted();
    log(`part ${part}, after ${Math.round((now() - begun) / 1000)} s`);
    await PARTS[part]?.(scene).catch(async (error: unknown) => await checks.check(part, () => [messageOf(error)]));
  }
  abort.throwIfAborted();
  return checks;
}

await runMain(async (args, abort) => {
  const command = parseCommand(args);
  if (command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const started = systemClock.monotonic();
  const directory = await mkdtemp(join(tmpdir(), 'refit-proof-'));
  try {
    const { outcome } = await prove(command, directory, abort);
    return conclude(outcome, started);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
