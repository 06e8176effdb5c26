/** Runs the commands of a release, and keeps what they fetch in a cache outside the tree. */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RefitError } from '../../src/util/errors.ts';
import { cacheDirectory } from '../controlplane/build.ts';
import { lastLines, type RunOptions, run } from '../controlplane/run.ts';

/** Standard output. Throws REFIT_FILE when the command fails. */
export async function must(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { ok, stdout, stderr } = await run(command, args, options);
  if (!ok)
    throw new RefitError(
      'REFIT_FILE',
      `\`${[command, ...args].join(' ')}\` failed: ${lastLines(stderr)}`,
    );
  return stdout;
}

/** Returns a folder in the cache of fetched files. The folder can be removed at any time. */
export async function cacheFolder(name: string): Promise<string> {
  const folder = join(dirname(cacheDirectory(process.env)), name);
  await mkdir(folder, { recursive: true });
  return folder;
}
