/** The command behind `npm run proof:k0s`. Refit and k0s upgrade a real cluster of k0s on machines made of namespaces. */
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../src/util/clock.ts';
import { RefitError } from '../../../src/util/errors.ts';
import { runMain } from '../../../tools/main.ts';
import { buildOwnFile } from '../../support/one-file.ts';
import type { Outcome } from '../checks.ts';
import { parsed } from '../command.ts';
import { withInotify } from '../machines/host.ts';
import { gatherPackages } from '../machines/packages.ts';
import { enterPart, logsOf, placeOf, proveOnMachines, together } from '../machines/whole-proof.ts';
import { type InsideOptions, SCENES, type SceneName } from './options.ts';
import { makeImages } from './parts/images.ts';
import { builtReleases, FROM, givenReleases, NEED_SOURCE, TO } from './parts/releases.ts';
import { commitOf } from './parts/source.ts';

/** The scenes that run only if they are named. */
const BY_NAME: readonly SceneName[] = ['long', 'recordings'];

const HELP = `Usage: npm run proof:k0s -- (--source DIR | --binaries OLD NEW) [--only SCENE] [--pairs N]

Builds k0s ${FROM} and ${TO} from a git repository of k0s, makes machines of namespaces and clusters of real k0s on them, upgrades the
clusters with Refit, with k0s, and with both, and looks at everything afterwards. Needs root. Nothing is left behind.

  --source DIR         a git repository of k0s with both tags; a bare one is enough
  --binaries OLD NEW   two executables of k0s, with the programs that a release carries, instead of a repository;
                       without the scenes ${NEED_SOURCE.join(', ')}
  --only SCENE         \`upgrade\`: one upgrade by Refit and one by k0s alone, with their times beside each other;
                       \`mixtures\`: leader and agents of either product;
                       \`migrate\`: from k0s's own autopilot to Refit, and back;
                       \`faults\`: processes that are killed, releases that do not run, hosts that fail;
                       \`policy\`: waves, gates, holds, hooks, rules for drains and a window;
                       \`back\`: \`refit rollback\` after the end, in the middle, and after a failed release;
                       \`updates\`: a channel with five releases;
                       \`long\`: 50 upgrades to and fro;
                       \`recordings\`: k0s alone, for the doubles of the tests. These two run only by their names
  --pairs N            how often \`upgrade\` compares Refit with k0s (default 1)
  --record DIR         where \`recordings\` writes (default: test/fixtures/autopilot/recorded)
  --help               this text
`;

const RECORDINGS = join(import.meta.dirname, '../../fixtures/autopilot/recorded');

interface Command {
  readonly scenes: readonly SceneName[];
  readonly pairs: number;
  readonly record: string;
  readonly source?: string;
  readonly binaries?: readonly [old: string, new: string];
}

function parseCommand(args: string[]): Command | undefined {
  const options = {
    source: { type: 'string' },
    binaries: { type: 'string' },
    only: { type: 'string' },
    pairs: { type: 'string' },
    record: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const { values, positionals } = parsed(() =>
    parseArgs({ args, options, allowPositionals: true }),
  );
  if (values.help === true) return undefined;
  const { source, binaries, only, pairs = '1', record = RECORDINGS } = values;
  const scene = SCENES.find((each) => each === only);
  if (only !== undefined && scene === undefined)
    throw new RefitError(
      'REFIT_USAGE',
      `--only wants one of ${SCENES.join(', ')}, found "${only}"`,
    );
  if (!/^[1-9]$/.test(pairs))
    throw new RefitError('REFIT_USAGE', `--pairs wants a number from 1 to 9, found "${pairs}"`);
  if ((source === undefined) === (binaries === undefined)) {
    const found = source === undefined ? 'none of them' : 'both';
    throw new RefitError(
      'REFIT_USAGE',
      `this command wants either --source DIR or --binaries OLD NEW, found ${found}`,
    );
  }
  const [second, ...rest] = positionals;
  if (binaries === undefined && second !== undefined)
    throw new RefitError('REFIT_USAGE', `"${second}" belongs to no option`);
  if (binaries !== undefined && (second === undefined || rest.length > 0))
    throw new RefitError(
      'REFIT_USAGE',
      `--binaries wants two files, as in --binaries OLD NEW, found ${positionals.length + 1}: ${[binaries, ...positionals].join(' ')}`,
    );
  if (values.record !== undefined && scene !== 'recordings')
    throw new RefitError(
      'REFIT_USAGE',
      `--record belongs to --only recordings, found ${scene === undefined ? 'no --only' : `--only ${scene}`}`,
    );
  const scenes = scene ? [scene] : SCENES.filter((each) => !BY_NAME.includes(each));
  const impossible =
    binaries === undefined ? [] : scenes.filter((each) => NEED_SOURCE.includes(each));
  if (scene !== undefined && impossible.length > 0)
    throw new RefitError(
      'REFIT_USAGE',
      `the scene ${scene} needs more releases than two: use --source DIR, found --binaries`,
    );
  return {
    scenes: scenes.filter((each) => !impossible.includes(each)),
    pairs: Number(pairs),
    record: resolve(record),
    ...(source === undefined ? {} : { source: resolve(source) }),
    ...(binaries === undefined || second === undefined
      ? {}
      : { binaries: [resolve(binaries), resolve(second)] as const }),
  };
}

async function prove(command: Command, directory: string, abort: AbortSignal): Promise<Outcome> {
  const log = (line: string): void => void process.stdout.write(`${line}\n`);
  const now = (): number => systemClock.monotonic();
  const building = { environment: process.env, log, now, abort };
  const parts = join(directory, 'parts');
  for (const folder of [parts, join(directory, 'refit')]) await mkdir(folder);
  const { binaries, source = '', scenes, pairs, record } = command;
  const given = binaries && (await givenReleases(...binaries));
  // A wrong repository is refused before anything is downloaded.
  if (given === undefined) for (const tag of [FROM, TO]) await commitOf(source, tag);
  await gatherPackages(parts, log);
  const releases = given ?? (await builtReleases(source, scenes, building));
  await makeImages(parts, building);
  const refit = await buildOwnFile(join(directory, 'refit'));
  const shared = { ...releases, pairs, record, parts, refit, logs: logsOf(directory), workers: 3 };
  const outcomes: Outcome[] = [];
  await withInotify(async () => {
    for (const scene of scenes) {
      const options: InsideOptions = { ...shared, ...placeOf(directory, scene) };
      outcomes.push(await enterPart(join(import.meta.dirname, 'inside.ts'), options, abort));
      await rm(options.directory, { recursive: true });
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
  return await proveOnMachines(
    command.scenes,
    async (directory) => await prove(command, directory, abort),
  );
});
