/**
 * The command behind `npm run proof:suc`. It compares Refit with the real system-upgrade-controller on a real kubeadm
 * cluster, whose machines are made of namespaces.
 */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import { ensureComponents } from '../../../tools/controlplane/build.ts';
import { runMain } from '../../../tools/main.ts';
import type { Outcome } from '../checks.ts';
import { parsed } from '../command.ts';
import { makeImages } from '../kubeadm/images/kubernetes.ts';
import { gatherPrograms, TO } from '../kubeadm/parts/programs.ts';
import { withInotify } from '../machines/host.ts';
import { gatherPackages } from '../machines/packages.ts';
import { enterPart, logsOf, placeOf, proveOnMachines, together } from '../machines/whole-proof.ts';
import { makeSucImages } from './images.ts';
import { type InsideOptions, PARTS, type Part } from './options.ts';
import { gatherOriginal, ORIGINAL_VERSION } from './original.ts';

const INSIDE = join(import.meta.dirname, 'inside.ts');
/** The suite expects that exactly one Node is no control plane. */
const WORKERS: Readonly<Record<Part, number>> = { suite: 1, swap: 2 };

const HELP = `Usage: npm run proof:suc -- --source DIR [--tag TAG] [--only PART]

Builds the real system-upgrade-controller and its own test suite, makes machines of namespaces and a kubeadm cluster of
Kubernetes ${TO} on them, and compares Refit with the original. Needs root. Nothing is left behind, except what is built.

  --source DIR  a git repository of rancher/system-upgrade-controller
  --tag TAG     the version of the original (default ${ORIGINAL_VERSION})
  --only PART   \`suite\`: the specs of the original, with the original and then with Refit;
                \`swap\`: Refit takes over from the original while a Job runs, and the original takes over from Refit
  --help        this text
`;

interface Command {
  readonly source: string;
  readonly tag: string;
  readonly chosen: readonly Part[];
}

function parseCommand(args: string[]): Command | undefined {
  const text = { type: 'string' } as const;
  const options = { source: text, tag: text, only: text, help: { type: 'boolean' } } as const;
  const {
    source,
    tag = ORIGINAL_VERSION,
    only,
    help,
  } = parsed(() => parseArgs({ args, options })).values;
  if (help === true) return undefined;
  if (!source)
    throw new RefitError(
      'REFIT_USAGE',
      '--source is missing: it names a git repository of rancher/system-upgrade-controller',
    );
  const part = PARTS.find((each) => each === only);
  if (only !== undefined && part === undefined)
    throw new RefitError('REFIT_USAGE', `--only wants one of ${PARTS.join(', ')}, found "${only}"`);
  return { source, tag, chosen: part ? [part] : PARTS };
}

async function proveParts(
  { source, tag, chosen }: Command,
  directory: string,
  abort: AbortSignal,
): Promise<Outcome> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const parts = join(directory, 'parts');
  await mkdir(parts);
  const now = (): number => systemClock.monotonic();
  const building = { environment: process.env, log, now, abort };
  const original = await gatherOriginal(source, tag, building);
  const programs = await gatherPrograms(parts, [TO], building);
  const { helm } = await ensureComponents(['helm'], building);
  await gatherPackages(parts, log);
  await cp(programs.etcds[TO]?.server ?? '', join(parts, 'etcd'));
  await makeImages({ archives: join(parts, 'images'), versions: [TO], parts, ...programs });
  const archives = await makeSucImages({ parts, kubernetes: TO, original, version: tag });
  const shared = { original, version: tag, archives, parts, helm, from: TO, offers: [] };
  const outcomes: Outcome[] = [];
  await withInotify(async () => {
    for (const part of chosen) {
      const options: InsideOptions = {
        ...shared,
        ...placeOf(directory, part),
        controlPlanes: 1,
        workers: WORKERS[part],
        logs: logsOf(directory),
      };
      outcomes.push(await enterPart(INSIDE, options, abort));
    }
  });
  return together(outcomes);
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
