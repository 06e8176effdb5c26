/**
 * The command behind `npm run proof:kubeadm`. Refit upgrades a real kubeadm cluster on machines that are made of
 * namespaces.
 */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import { buildRefit } from '../../../tools/build/refit.ts';
import { buildControlPlane } from '../../../tools/controlplane/control-plane.ts';
import { runMain } from '../../../tools/main.ts';
import { gatherManagers } from '../capi/managers/programs.ts';
import type { Outcome } from '../checks.ts';
import { parsed } from '../command.ts';
import { withInotify } from '../machines/host.ts';
import { gatherPackages } from '../machines/packages.ts';
import { enterPart, logsOf, placeOf, proveOnMachines, together } from '../machines/whole-proof.ts';
import { makeImages } from './images/kubernetes.ts';
import { makeRefitImage } from './images/refit.ts';
import type { InsideOptions, Part } from './options.ts';
import { EARLIER, FROM, gatherPrograms, NEXT_MINOR, TO } from './parts/programs.ts';
import { makeRepository } from './patch-back/packaged.ts';

const INSIDE = join(import.meta.dirname, 'inside.ts');
/** Parts for which a cluster of one control plane and one worker is enough. */
const SMALL: readonly Part[] = [
  'daemonset',
  'hops',
  'packages-back',
  'patch-back',
  'skipped-minors',
  'static-pods-back',
];

const HELP = `Usage: npm run proof:kubeadm -- [--size N+M] [--only PART]

Builds Kubernetes ${FROM} and ${TO}, makes machines of namespaces and a kubeadm cluster on them, upgrades it with
\`refit kubeadm apply\`, and looks at everything afterwards; beside it once more, with faults. Needs root. Nothing is left
behind.

  --size N+M       control planes and workers (default 3+2; ${SMALL.join(', ')}: 1+1)
  --only PART      \`upgrade\`: the first cluster; \`faults\`: the second one;
                   \`another-way\`: a cluster that is made as differently as can be;
                   \`agents\`: a cluster that agents upgrade, led by the extension for Cluster API;
                   \`daemonset\`: the same, but each agent is a pod of the DaemonSet, which ends in the middle;
                   \`managers\`: a cluster that Cluster API's managers make and upgrade, by agents;
                   \`recordings\`: kubeadm by itself, for test/fixtures/kubeadm;
                   \`roll-back\`: a kubelet that does not run, which takes Refit five minutes to be sure of;
                   \`static-pods-back\`: a scheduler that does not run, which takes Refit as long;
                   \`patch-back\`: a whole cluster that goes back to ${FROM};
                   \`packages-back\`: the same, with packages of Debian instead of files;
                   \`replace-host\`: members of etcd that are lost for good;
                   \`certificates\`: a cluster of ${TO} whose certificates end soon;
                   \`minor\`: from ${TO} to ${NEXT_MINOR}, with the etcd that this minor version installs;
                   \`hops\`: one minor version after the other, from ${EARLIER[0]}, which is built, too;
                   \`skipped-minors\`: the same, but workers go straight to ${TO}
  --help           this text
`;

/**
 * The upgrade as the guide describes it, and the upgrade with faults. They run at the same time, because each of them
 * mostly waits.
 */
const USUAL: readonly Part[] = ['upgrade', 'faults'];
/** All parts, with those that take too long to run every time. */
const PARTS: readonly Part[] = [
  ...USUAL,
  'another-way',
  'agents',
  'daemonset',
  'managers',
  'recordings',
  'roll-back',
  'static-pods-back',
  'patch-back',
  'packages-back',
  'replace-host',
  'certificates',
  'minor',
  'hops',
  'skipped-minors',
];

/** The versions of a part in the order in which they are installed, for the parts that do not use the usual versions. */
const VERSIONS: Readonly<Partial<Record<Part, readonly string[]>>> = {
  certificates: [TO, TO],
  minor: [TO, NEXT_MINOR],
  // The cluster goes to the new version and back.
  'patch-back': [FROM, TO, FROM],
  'packages-back': [FROM, TO, FROM],
  hops: [...EARLIER, TO],
  'skipped-minors': [...EARLIER, TO],
};

interface Command {
  readonly controlPlanes: number;
  readonly workers: number;
  readonly chosen: readonly Part[];
}

const isSmall = (only = ''): boolean => SMALL.some((part) => part === only);

function parseCommand(args: string[]): Command | undefined {
  const options = {
    size: { type: 'string' },
    only: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const {
    only,
    size = isSmall(only) ? '1+1' : '3+2',
    help,
  } = parsed(() => parseArgs({ args, options })).values;
  if (help === true) return undefined;
  const [, controlPlanes, workers] = /^([1-5])\+([1-3])$/.exec(size) ?? [];
  if (controlPlanes === undefined)
    throw new RefitError(
      'REFIT_USAGE',
      `--size wants 1 to 5 control planes and 1 to 3 workers, as in 3+2, found "${size}"`,
    );
  const part = PARTS.find((each) => each === only);
  if (only !== undefined && part === undefined)
    throw new RefitError('REFIT_USAGE', `--only wants one of ${PARTS.join(', ')}, found "${only}"`);
  return {
    controlPlanes: Number(controlPlanes),
    workers: Number(workers),
    chosen: part ? [part] : USUAL,
  };
}

async function proveParts(
  command: Command,
  directory: string,
  abort: AbortSignal,
): Promise<Outcome> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const parts = join(directory, 'parts');
  await mkdir(parts);
  const now = (): number => systemClock.monotonic();
  const building = { environment: process.env, log, now, abort };
  const [from = FROM, ...offers] = VERSIONS[command.chosen[0] ?? 'upgrade'] ?? [FROM, TO];
  const versions = [...new Set([from, ...offers])];
  const programs = await gatherPrograms(parts, versions, building);
  const isManaged = command.chosen.includes('managers');
  const managers = isManaged ? await gatherManagers('1.14', building) : [];
  if (isManaged) await buildControlPlane({ log, abort });
  await gatherPackages(parts, log);
  await cp(programs.etcds[from]?.server ?? '', join(parts, 'etcd'));
  await makeImages({ archives: join(parts, 'images'), versions, parts, ...programs });
  const refit = await buildRefit(join(directory, 'refit'), 'readable');
  if (command.chosen.includes('daemonset')) await makeRefitImage(parts);
  if (command.chosen.includes('packages-back')) await makeRepository(parts, versions);
  const shared = {
    ...command,
    managers,
    parts,
    from,
    offers,
    etcd: programs.etcds[versions.at(-1) ?? from]?.version ?? '',
    refit,
    logs: logsOf(directory),
  };
  const outcomes: Outcome[] = [];
  const prove = async (part: Part): Promise<void> => {
    const options: InsideOptions = { ...shared, ...placeOf(directory, part) };
    outcomes.push(await enterPart(INSIDE, options, abort));
  };
  await withInotify(async () => void (await Promise.all(command.chosen.map(prove))));
  return together(outcomes);
}

await runMain(async (args, abort) => {
  const command = parseCommand(args);
  if (command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const run = async (directory: string): Promise<Outcome> =>
    await proveParts(command, directory, abort);
  return await proveOnMachines(command.chosen, run);
});
