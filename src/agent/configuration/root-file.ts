/**
 * Reads and replaces a file of root that Cluster API names. Only root may be able to change the file, or any directory
 * on its path.
 */
import { constants } from 'node:fs';
import { lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ConfigurationItem } from '../../signal/node-configuration.ts';
import { syncPath } from '../state/durable-files.ts';
import { assertTrustedPath, unless } from '../state/trusted-path.ts';

export interface FileState {
  /** The content in base64. */
  readonly content: ConfigurationItem['content'];
  readonly mode: ConfigurationItem['mode'];
  readonly gid: number;
}

/**
 * Returns undefined if there is no file. Rejects if the path contains a symbolic link, if the file has a second hard
 * link, if it is not a regular file of at most 1 MiB, or if users other than root could change it.
 */
export async function readRootFile(path: string): Promise<FileState | undefined> {
  const folder = dirname(path);
  // Guard root-folder. Nobody else can replace the file.
  await assertTrustedPath(folder);
  // Guard root-link. A path leads only to the place that it names.
  if ((await realpath(folder)) !== folder)
    throw new Error(`${folder} is reached by a symbolic link`);
  const found = await unless('ENOENT', lstat(path));
  if (!found) return undefined;
  // Guard root-regular. The file has no second name.
  if (!found.isFile() || found.nlink !== 1 || found.size > 1024 * 1024)
    throw new Error(`${path} must be a regular file with only one hard link and at most 1 MiB`);
  // Guard root-writable. Nobody else can change the file.
  await assertTrustedPath(path);
  await using handle = await open(
    path,
    // Backed by root-folder. Nobody else can put a link there after the check.
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  return {
    content: (await handle.readFile()).toString('base64'),
    mode: found.mode & 0o7777,
    gid: found.gid,
  };
}

/**
 * Replaces the file, or removes it if `state` is undefined. A reader finds the old file or the new one, also after
 * power loss.
 */
export async function writeRootFile(path: string, state: FileState | undefined): Promise<void> {
  // Somebody may have changed a directory since it was checked.
  // Guard root-again. Somebody may have changed a directory since it was checked.
  await readRootFile(path);
  // Programs that read all files of a directory skip names that begin with a dot.
  const draft = join(dirname(path), `.${basename(path)}.refit`);
  await rm(draft, { force: true });
  if (state === undefined) await rm(path, { force: true });
  else {
    {
      await using handle = await open(draft, 'wx', 0o600);
      await handle.writeFile(Buffer.from(state.content, 'base64'));
      await handle.chown(-1, state.gid);
      await handle.chmod(state.mode);
      await handle.sync();
    }
    await rename(draft, path);
  }
  await syncPath(dirname(path));
}
