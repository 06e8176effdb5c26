/** Owns taking a state directory into use: made where it is missing, and locked to this process. */
import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, RefitError } from '../../util/errors.ts';
import { takeLock } from './lock.ts';
import { pathsIn, type StatePaths } from './paths.ts';

/** Throws REFIT_FILE where it cannot be used, and REFIT_AGENT where another agent works with it. */
export async function openStateDirectory(path: string): Promise<StatePaths> {
  const paths = pathsIn(path);
  try {
    await makeDirectory(path);
    await takeLock(paths.lock, process.pid);
    return paths;
  } catch (error) {
    if (error instanceof RefitError) throw error;
    throw new RefitError('REFIT_FILE', `cannot use the state directory ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Step by step: where a parent exists and still takes no directory, as in /proc, Node's own recursion would never end.
 */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    await makeDirectory(parent);
    await mkdir(path, { mode: 0o700 });
  }
}
