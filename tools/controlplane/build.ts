/** Finds binaries in KUBEBUILDER_ASSETS or the cache, and builds missing ones from the Go module proxy. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { type Component, RECIPES, type Recipe } from './components.ts';
import { withLock } from './lock.ts';
import { lastLines, run } from './run.ts';
import { findToolchain, GO_VERSION, type Toolchain } from './toolchain.ts';

export interface BuildOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with one line for each slow step. */
  readonly log: (line: string) => void;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly abort?: AbortSignal | undefined;
}

const TOOLS = join(import.meta.dirname, '..');
/** Static binaries without paths of this tree: equal manifests give equal binaries. */
const COMMON_FLAGS = ['-buildvcs=false', '-trimpath'];
/**
 * Debug information would take a tenth of the build time, and the binaries are stripped of it anyway. The binaries are
 * the same with and without this flag, so no cache key contains it.
 */
const WITHOUT_DEBUG = ['-gcflags=all=-dwarf=false'];
/**
 * Garbage collection takes a sixth of the compiler's time. With these settings the compiler collects garbage less often
 * while there is memory.
 */
const COMPILER_MEMORY = { GOGC: '400', GOMEMLIMIT: '2GiB' };
const PROGRESS_MS = 15_000;

/** The folder of all that is built or installed for the control plane. It can be removed at any time; it is then built again. */
export function cacheDirectory(environment: BuildOptions['environment']): string {
  const home = environment['HOME'] || homedir();
  return join(environment['XDG_CACHE_HOME'] || join(home, '.cache'), 'refit', 'controlplane');
}

/** Paths of the components' binaries. Throws REFIT_TESTENV when one cannot be built. */
export async function ensureComponents<C extends Component>(
  wanted: readonly C[],
  options: BuildOptions,
): Promise<Record<C, string>> {
  const paths = await ensureBuilt(
    wanted.map((name) => [name, RECIPES[name]]),
    options,
  );
  return Object.fromEntries(wanted.map((name, index) => [name, paths[index]])) as Record<C, string>;
}

type Named = readonly [name: string, recipe: Recipe];

/** Paths of the binaries, in the order of the recipes. Throws REFIT_TESTENV when one cannot be built. */
export async function ensureBuilt(
  wanted: readonly Named[],
  options: BuildOptions,
): Promise<string[]> {
  const paths = await Promise.all(wanted.map(async (each) => await locate(each, options)));
  const missing = wanted.flatMap((each, index) => {
    const path = paths[index] ?? '';
    return existsSync(path) ? [] : [{ each, path }];
  });
  if (missing.length > 0) {
    const cache = cacheDirectory(options.environment);
    await mkdir(cache, { recursive: true });
    const onWait = (): void =>
      options.log('another process is building the control plane; waiting until it has finished');
    await withLock(
      cache,
      { onWait, abort: options.abort },
      async () => await buildAll(missing, cache, options),
    );
  }
  return paths;
}

async function locate([name, recipe]: Named, { environment }: BuildOptions): Promise<string> {
  const assets = environment['KUBEBUILDER_ASSETS'];
  const given = assets ? join(assets, name) : undefined;
  if (given !== undefined && existsSync(given)) return given;
  return join(cacheDirectory(environment), await cacheKey(name, recipe), name);
}

/** Returns a key that depends on everything that can change the binary, except the patch release of the Go toolchain. */
async function cacheKey(name: string, recipe: Recipe): Promise<string> {
  const { module, package: path, flags } = recipe;
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(await readFile(join(TOOLS, module, file)));
  for (const file of await filesOf(recipe)) hash.update(await readFile(file));
  hash.update(
    [process.platform, process.arch, GO_VERSION, path, ...COMMON_FLAGS, ...flags].join('\n'),
  );
  return `${name}-${hash.digest('hex').slice(0, 16)}`;
}

/** Resolves with the paths of the Go files of a package of ours. */
async function filesOf({ program }: Recipe): Promise<string[]> {
  if (program === undefined) return [];
  const names = await readdir(join(TOOLS, program));
  return names.toSorted().map((name) => join(TOOLS, program, name));
}

/**
 * Resolves with the flags that make the Go files of a package of ours a part of the module. The files stay where they
 * are, so that all modules can use them.
 */
async function overlayFlags(recipe: Recipe, staging: string): Promise<string[]> {
  const files = await filesOf(recipe);
  if (files.length === 0) return [];
  const folder = join(TOOLS, recipe.module, recipe.package);
  const replaced = files.map((file) => [join(folder, basename(file)), file] as const);
  const path = join(staging, 'overlay.json');
  await writeFile(path, JSON.stringify({ Replace: Object.fromEntries(replaced) }));
  return ['-overlay', path];
}

async function buildAll(
  missing: readonly { readonly each: Named; readonly path: string }[],
  cache: string,
  options: BuildOptions,
): Promise<void> {
  const still = missing.filter(({ path }) => !existsSync(path));
  if (still.length === 0) return;
  const toolchain = await findToolchain({ cache, run, log: options.log, abort: options.abort });
  options.log(
    `building ${still.map(({ each: [name] }) => name).join(', ')} into ${cache} (about five minutes for all, once)`,
  );
  const staging = await mkdtemp(join(cache, 'staging-'));
  try {
    for (const { each, path } of still) await build(each, path, staging, toolchain, options);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

async function build(
  [name, recipe]: Named,
  path: string,
  staging: string,
  { go, environment }: Toolchain,
  { log, now, abort }: BuildOptions,
): Promise<void> {
  const started = now();
  const seconds = (): number => Math.round((now() - started) / 1000);
  const progress = setInterval(
    () => log(`building ${name} ${recipe.version}: ${seconds()} s`),
    PROGRESS_MS,
  );
  const output = join(staging, name);
  const args = [
    'build',
    ...COMMON_FLAGS,
    ...WITHOUT_DEBUG,
    ...recipe.flags,
    ...(await overlayFlags(recipe, staging)),
    '-o',
    output,
    recipe.package,
  ];
  const result = await run(go, args, {
    cwd: join(TOOLS, recipe.module),
    environment: { ...COMPILER_MEMORY, ...environment, CGO_ENABLED: '0', GOWORK: 'off' },
    abort,
  }).finally(() => clearInterval(progress));
  if (!result.ok) {
    throw new RefitError('REFIT_TESTENV', `building ${name} failed: ${lastLines(result.stderr)}`);
  }
  await mkdir(join(path, '..'), { recursive: true });
  await rename(output, path);
  log(`built ${name} ${recipe.version} in ${seconds()} s`);
}
