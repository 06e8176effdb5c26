/** Opens the state directory: creates it if needed, and locks it to this process. */
import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf, RefitError } from '../../util/errors.ts';
import { takeLock } from './lock.ts';

/** Throws REFIT_FILE when it is unusable, and REFIT_AGENT when another agent uses it. */
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
 * One level after the other: the recursive mkdir of Node.js never ends when a parent exists but refuses, as in /proc.
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

/** Named as in the original, so that each finds the files that the other left. */
export function pathsBeside(binary: string): { staged: string; part: string; previous: string } {
  return {
    staged: `${binary}.tmp`,
    part: join(dirname(binary), `.${basename(binary)}.tmp.part`),
    previous: `${binary}.previous`,
  };
}

export interface StatePaths {
  readonly journal: string;
  /** Journal of the second agent, on a host whose airgap signals are on another object. */
  readonly airgapJournal: string;
  readonly lock: string;
  /** Records of incomplete downloads. */
  readonly record: string;
  readonly bundleRecord: string;
  /** List of the placed airgap bundles. */
  readonly bundles: string;
}

export function pathsIn(stateDirectory: string): StatePaths {
  return {
    journal: join(stateDirectory, 'journal.json'),
    airgapJournal: join(stateDirectory, 'journal-airgap.json'),
    lock: join(stateDirectory, 'agent.lock'),
    record: join(stateDirectory, 'download.json'),
    bundleRecord: join(stateDirectory, 'download-airgap.json'),
    bundles: join(stateDirectory, 'airgap-bundles.json'),
  };
}
