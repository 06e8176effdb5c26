/**
 * Changes files so that the change survives power loss. It writes whole files, or replaces them by a rename, and syncs
 * the files and their directories to the disk.
 */
import * as fsPromises from 'node:fs/promises';
import { dirname } from 'node:path';

/** The functions of node:fs/promises that are used. Tests replace them to record calls and to make them fail. */
export type Files = Pick<
  typeof fsPromises,
  | 'open'
  | 'rename'
  | 'link'
  | 'copyFile'
  | 'rm'
  | 'chmod'
  | 'lstat'
  | 'stat'
  | 'statfs'
  | 'mkdir'
  | 'readFile'
>;

/** Replaces the whole file. A reader finds the old text or the new one, also after power loss. */
export async function writeDurably(
  path: string,
  text: string,
  files: Files = fsPromises,
): Promise<void> {
  const next = `${path}.new`;
  {
    await using handle = await files.open(next, 'w', 0o600);
    await handle.writeFile(text);
    await handle.sync();
  }
  await files.rename(next, path);
  await syncPath(dirname(path), files);
}

/**
 * Replaces the file `target`, which must exist, by the file `source`. If `verify` rejects, the old file stays. The
 * second argument of `verify` is true if the new file is a copy, because a copy lacks extended attributes.
 */
export async function replaceDurably(
  source: string,
  target: string,
  files: Files = fsPromises,
  verify: (path: string, isCopy: boolean) => Promise<void> = async () => await Promise.resolve(),
): Promise<void> {
  const next = `${target}.new`;
  await files.rm(next, { force: true });
  let isCopy = false;
  try {
    await files.link(source, next);
  } catch (error) {
    if (!NO_LINKS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // The file system has no hard links, so the file is copied. With hard links there is no copy: `source` remains as a
    // second name of the new file.
    isCopy = true;
    await files.copyFile(source, next);
    await syncPath(next, files);
  }
  try {
    await verify(next, isCopy);
    await files.rename(next, target);
  } finally {
    // After a failure the name `next` still exists. It also exists if both names belong to one file, because rename(2)
    // then does nothing. This happens when the step is repeated after a crash.
    await files.rm(next, { force: true });
  }
  await syncPath(dirname(target), files);
}

/** Syncs a file, or a directory with the names in it. */
export async function syncPath(
  path: string,
  files: Pick<Files, 'open'> = fsPromises,
): Promise<void> {
  await using handle = await files.open(path, 'r');
  await handle.sync();
}

/** Returns true if the disk is full, or the quota is used up. */
export function isDiskFull(thrown: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((thrown as NodeJS.ErrnoException | undefined)?.code ?? '');
}

const NO_LINKS = ['EPERM', 'EXDEV', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];
