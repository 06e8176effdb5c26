/** Makes the one-file binary `refit`: the program and the Node.js that runs it (a single executable application). */
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { NODE_FLAGS } from '../build/node-flags.ts';
import { must } from './commands.ts';
import { withoutUnloaded } from './elf.ts';
import { type Lock, nodePackage, type Platform } from './node-package.ts';

const MAIN = join(import.meta.dirname, 'one-file.cjs');

/** Builds the binary. `program` is the folder that `buildProgram` wrote. */
export async function buildBinary(
  platform: Platform,
  lock: Lock,
  program: string,
  output: string,
): Promise<void> {
  const node = join(await nodePackage(platform, lock), 'bin', 'node');
  const staging = await mkdtemp(join(tmpdir(), 'refit-binary-'));
  try {
    const executable = join(staging, 'node');
    await writeFile(executable, withoutUnloaded(await readFile(node)), { mode: 0o755 });
    const chunks = (await readdir(program)).filter((name) => name.endsWith('.js')).toSorted();
    await copyFile(MAIN, join(staging, basename(MAIN)));
    const config = {
      // This text becomes part of the binary. A full path would differ on each machine.
      main: basename(MAIN),
      executable,
      output,
      disableExperimentalSEAWarning: true,
      // Node takes more options from `--node-options`, which only the unit of the agent passes. NODE_OPTIONS has no
      // effect.
      execArgvExtension: 'cli',
      execArgv: NODE_FLAGS,
      assets: Object.fromEntries(chunks.map((name) => [name, join(program, name)])),
    };
    const file = join(staging, 'config.json');
    await writeFile(file, JSON.stringify(config));
    await must(process.execPath, ['--build-sea', file], { cwd: staging });
  } finally {
    await rm(staging, { recursive: true });
  }
}
