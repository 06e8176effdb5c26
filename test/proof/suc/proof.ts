/**
 * The command behind `npm run proof:suc`. It compares Refit with the real system-upgrade-controller on a real kubeadm
 * cluster, whose machines are made of namespaces.
 */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import { buildRefit } from '../../../tools/build/refit.ts';
import { type BuildOptions, ensureComponents } from '../../../tools/controlplane/build.ts';
import { runMain } from '../../../tools/main.ts';
import type { Outcome } from '../checks.ts';
import { parsed } from '../command.ts';
import { makeImages } from '../kubeadm/images/kubernetes.ts';
import { gatherPrograms, TO } from '../kubeadm/parts/programs.ts';
import { withInotify } from '../machines/host.ts';
import { gatherPackages } from '../machines/packages.ts';
import { enterPart, logsOf, placeOf, proveOnMachines, together } from '../machines/whole-proof.ts';
import { makeCommonImages, makeOriginalImages } from './images.ts';
import { type InsideOptions, PARTS, type Part } from './options.ts';
import { commitOfOriginal, gatherOriginal, ORIGINAL_VERSION } from './original.ts';
import { buildK3s, makeUpgradeImages } from './upgrade-script/programs.ts';
import { commitOfScript, takeScript, type UpgradeScript } from './upgrade-script/script.ts';

const INSIDE = join(import.meta.dirname, 'inside.ts');
/** The suite expects that exactly one Node is no control plane. */
const SIZES: Readonly<Record<Part, { controlPlanes: number; workers: number }>> = {
  suite: { controlPlanes: 1, workers: 1 },
  swap: { controlPlanes: 1, workers: 2 },
  'upgrade-script': { controlPlanes: 2, workers: 1 },
};

const HELP = `Usage: npm run proof:suc -- --source DIR [--tag TAG] [--k3s-upgrade DIR] [--only PART]

Builds the real system-upgrade-controller and its own test suite, makes machines of namespaces and a kubeadm cluster of
Kubernetes ${TO} on them, and compares Refit with the original. Needs root. Nothing is left behind, except what is built.

  --source DIR       a git repository of rancher/system-upgrade-controller. The part \`upgrade-script\` does not need it
  --tag TAG          the version of the original (default ${ORIGINAL_VERSION})
  --k3s-upgrade DIR  a git repository of k3s-io/k3s-upgrade. Without it, the part \`upgrade-script\` does not run
  --only PART        \`suite\`: the specs of the original, with the original and then with Refit;
                     \`swap\`: Refit takes over from the original while a Job runs, and the original takes over from Refit;
                     \`upgrade-script\`: the script of k3s-upgrade upgrades stand-ins for K3s in the Jobs of Refit
  --help             this text
`;

interface Command {
  readonly source: string | undefined;
  readonly tag: string;
  readonly k3sUpgrade: string | undefined;
  readonly chosen: readonly Part[];
}

const SCRIPT: Part = 'upgrade-script';

function parseCommand(args: string[]): Command | undefined {
  const text = { type: 'string' } as const;
  const options = {
    source: text,
    tag: text,
    'k3s-upgrade': text,
    only: text,
    help: { type: 'boolean' },
  } as const;
  const {
    source,
    tag = ORIGINAL_VERSION,
    'k3s-upgrade': k3sUpgrade,
    only,
    help,
  } = parsed(() => parseArgs({ args, options })).values;
  if (help === true) return undefined;
  const part = PARTS.find((each) => each === only);
  if (only !== undefined && part === undefined)
    throw new RefitError('REFIT_USAGE', `--only wants one of ${PARTS.join(', ')}, found "${only}"`);
  if (!source && part !== SCRIPT)
    throw new RefitError(
      'REFIT_USAGE',
      '--source is missing: it names a git repository of rancher/system-upgrade-controller',
    );
  if (!k3sUpgrade && part === SCRIPT)
    throw new RefitError(
      'REFIT_USAGE',
      '--k3s-upgrade is missing: it names a git repository of k3s-io/k3s-upgrade, from which the script is taken',
    );
  const usual = PARTS.filter((each) => each !== SCRIPT || k3sUpgrade);
  return { source, tag, k3sUpgrade, chosen: part ? [part] : usual };
}

async function proveParts(
  { source = '', tag, k3sUpgrade = '', chosen }: Command,
  directory: string,
  abort: AbortSignal,
): Promise<Outcome> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const hasOriginal = chosen.some((part) => part !== SCRIPT);
  // Wrong repositories are refused before anything is built.
  if (hasOriginal) await commitOfOriginal(source, tag);
  if (chosen.includes(SCRIPT)) await commitOfScript(k3sUpgrade);
  const parts = join(directory, 'parts');
  await mkdir(parts);
  const now = (): number => systemClock.monotonic();
  const building = { environment: process.env, log, now, abort };
  const original = hasOriginal ? await gatherOriginal(source, tag, building) : undefined;
  const script = chosen.includes(SCRIPT)
    ? await takeScript(k3sUpgrade, join(directory, 'k3s-upgrade'))
    : undefined;
  const programs = await gatherPrograms(parts, [TO], building);
  const { helm } = await ensureComponents(['helm'], building);
  await gatherPackages(parts, log);
  await cp(programs.etcds[TO]?.server ?? '', join(parts, 'etcd'));
  await makeImages({ archives: join(parts, 'images'), versions: [TO], parts, ...programs });
  const refit = await buildRefit(join(directory, 'refit'), 'readable');
  const common = await makeCommonImages(parts, TO);
  const withOriginal = original ? await makeOriginalImages(parts, original, tag) : [];
  const withScript = script ? await makeScriptImages(parts, script, building) : [];
  const shared = { original, version: tag, refit, parts, helm, from: TO, offers: [] };
  const outcomes: Outcome[] = [];
  await withInotify(async () => {
    for (const part of chosen) {
      const options: InsideOptions = {
        ...shared,
        ...placeOf(directory, part),
        ...SIZES[part],
        archives: [...common, ...(part === SCRIPT ? withScript : withOriginal)],
        logs: logsOf(directory),
      };
      outcomes.push(await enterPart(INSIDE, options, abort));
    }
  });
  return together(outcomes);
}

async function makeScriptImages(
  parts: string,
  script: UpgradeScript,
  building: BuildOptions,
): Promise<string[]> {
  building.log(`the script is from the commit ${script.commit} of k3s-io/k3s-upgrade`);
  await buildK3s(parts, building);
  return await makeUpgradeImages(parts, script, building.log);
}

await runMain(async (args, abort) => {
  const command = parseCommand(args);
  if (command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const prove = async (directory: string): Promise<Outcome> =>
    await proveParts(command, directory, abort);
  return await proveOnMachines(command.chosen, prove);
});
