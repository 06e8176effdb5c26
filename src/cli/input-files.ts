/** Reads the files that a user names with `-f` or as arguments: files, folders, and standard input. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readNamed } from '../util/bounded-file.ts';
import { RefitError } from '../util/errors.ts';

export interface InputFile {
  readonly path: string;
  readonly text: string;
  /** True if the user named a folder that has this file. Such a file may be meant for another program. */
  readonly isFromFolder: boolean;
}

/** Matches the names of the files that are read from a folder. Like kubectl, Refit does not read the folders inside of a folder. */
const MANIFEST_NAME = /\.(?:ya?ml|json)$/;

/**
 * Returns the files in the given order; the files of a folder are sorted by name. Throws REFIT_FILE with the path of an unreadable file.
 */
export async function readInputs(paths: readonly string[]): Promise<InputFile[]> {
  const read: InputFile[] = [];
  for (const path of paths) {
    const inside = await filesInFolder(path);
    for (const file of inside ?? [path])
      read.push({ path: file, text: await readNamed(file), isFromFolder: inside !== undefined });
  }
  return read;
}

/**
 * Resolves with the paths of the files of a folder; undefined if `path` is not a folder. A path that does not exist is
 * treated as a file, and the later read of that file reports the error.
 */
async function filesInFolder(path: string): Promise<string[] | undefined> {
  const isFolder = path !== '-' && (await stat(path).catch(() => undefined))?.isDirectory();
  if (isFolder !== true) return undefined;
  const entries = await readdir(path, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory() && MANIFEST_NAME.test(entry.name))
    .map(({ name }) => name);
  if (names.length > 0) return names.toSorted().map((name) => join(path, name));
  throw new RefitError(
    'REFIT_FILE',
    `${path}: the folder has no file whose name ends with .yaml, .yml or .json`,
  );
}
