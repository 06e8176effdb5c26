/** Opens the state directory: creates it if needed, and locks it to this process. */
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf, RefitError } from '../../util/errors.ts';
import { syncPath } from './durable-files.ts';
import { withSpare } from './journal-file.ts';
import { takeLock } from './lock.ts';
import { assertTrustedPath, isTrustedUser } from './trusted-path.ts';

/**
 * Returns the paths in the directory. Throws REFIT_FILE if the directory is unusable or others could change it, and
 * REFIT_AGENT if another agent works on this host.
 */
export async function openStateDirectory(path: string, runDirectory: string): Promise<StatePaths> {
  const paths = pathsIn(path);
  try {
    await openOwn(path);
    await withSpare(paths.journal, async () => await takeLock(paths.lock, process.pid));
    await openOwn(runDirectory);
    await takeLock(join(runDirectory, 'host.lock'), process.pid);
    return paths;
  } catch (error) {
    if (error instanceof RefitError) throw error;
    throw new RefitError(
      'REFIT_FILE',
      `cannot use the state directory ${path}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

/**
 * Creates or opens a directory that only root can change. It rejects if the directory contains links, files of other
 * users, or files to which others may write. Somebody may have created them while the directory was open to other users,
 * and a later write could follow them to another place.
 */
async function openOwn(path: string): Promise<void> {
  await makeDirectory(path);
  // Guard state-path. Nobody else can replace the journal.
  await assertTrustedPath(path);
  for (const name of await readdir(path)) {
    const found = await lstat(join(path, name));
    // Guard state-entries. A later write could follow the link.
    if (found.isSymbolicLink() || !isTrustedUser(found.uid))
      throw new Error(
        `${name} in it is a symbolic link or belongs to user ${found.uid}: remove it`,
      );
    // Guard state-files. Its owner, and others who may write to it, can change it.
    await assertTrustedPath(join(path, name));
  }
}

/**
 * Creates the parent directories one by one. The recursive mkdir of Node.js never ends if a parent exists but refuses
 * new directories, as in /proc.
 */
async function makeDirectory(path: string): Promise<void> {
  try {
    // Guard state-private. Nobody else can read which files the agent uses.
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    await makeDirectory(parent);
    return await makeDirectory(path);
  }
  // If the name of the directory is not synced, the journal in it may be lost after power loss.
  await syncPath(dirname(path));
}

/** Matches the names of all files that agents and their locks write into the state directory, and of their temporary files. */
const OWN =
  /^(?:(?:finished-)?journal|download|airgap-bundles|own-agent|kept-binary)[a-z-]*\.json(?:\.|$)|^(?:agent|host)\.lock[.-]/;

/**
 * Removes the files that agents wrote to the directory. It removes the directory as well, unless the directory contains
 * other files.
 */
export async function removeState(path: string): Promise<void> {
  const names = await readdir(path);
  for (const name of names) if (OWN.test(name)) await rm(join(path, name));
  if (names.every((name) => OWN.test(name))) await rmdir(path);
}

/** The files of one upgrade of a binary. */
export interface UpgradePaths {
  /** The directory of `staged` and `part`. */
  readonly staging: string;
  /** The verified new binary. */
  readonly staged: string;
  /** The incomplete download. */
  readonly part: string;
  /** The binary to which a roll-back returns. */
  readonly previous: string;
}

/**
 * Returns the paths of one upgrade. The new binary is staged in a directory of the agent, on the same file system as
 * the binary.
 */
export function upgradePathsOf(binary: string): UpgradePaths {
  const staging = join(dirname(binary), `.${basename(binary)}.refit`);
  return {
    staging,
    staged: join(staging, 'staged'),
    part: join(staging, 'part'),
    previous: `${binary}.previous`,
  };
}

/** The files in the state directory. */
export interface StatePaths {
  readonly journal: string;
  /**
   * The journal of the second agent of a host. A host has a second agent if another object carries its airgap signals.
   */
  readonly airgapJournal: string;
  /** The journal of a change of files, keys or kubelet arguments. */
  readonly configurationJournal: string;
  readonly lock: string;
  /** The record of an incomplete download of a binary. */
  readonly record: string;
  /** The record of an incomplete download of a bundle. */
  readonly bundleRecord: string;
  /** The list of bundles that the agent placed. */
  readonly bundles: string;
  /** The file that records whether the running service has an agent of its own. */
  readonly ownAgent: string;
  /** The record of the previous binary. */
  readonly kept: string;
}

/** Returns the paths of all files in the state directory. */
export function pathsIn(stateDirectory: string): StatePaths {
  return {
    journal: join(stateDirectory, 'journal.json'),
    airgapJournal: join(stateDirectory, 'journal-airgap.json'),
    configurationJournal: join(stateDirectory, 'journal-configuration.json'),
    lock: join(stateDirectory, 'agent.lock'),
    record: join(stateDirectory, 'download.json'),
    bundleRecord: join(stateDirectory, 'download-airgap.json'),
    bundles: join(stateDirectory, 'airgap-bundles.json'),
    ownAgent: join(stateDirectory, 'own-agent.json'),
    kept: join(stateDirectory, 'kept-binary.json'),
  };
}
