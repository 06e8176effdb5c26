/** The files that a person names with `-f` or as arguments: files, folders, and standard input. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readNamed } from '../util/bounded-file.ts';
import { RefitError } from '../util/errors.ts';

export interface InputFile {
  readonly path: string;
  readonly text: string;
  /** Found in a folder: it may be there for another reason than to be read here. */
  readonly isFromFolder: boolean;
}

/** As kubectl reads a folder: not the folders in it. */
const MANIFEST_NAME = /\.(?:ya?ml|json)$/;

/** In the given order, those of a folder by name. @throws RefitError REFIT_FILE with the path */
export async function readInputs(paths: readonly string[]): Promise<InputFile[]> {
  const read: InputFile[] = [];
  for (const path of paths) {
    const inside = await filesInFolder(path);
    for (const file of inside ?? [path])
      read.push({ path: file, text: await readNamed(file), isFromFolder: inside !== undefined });
  }
  return read;
}

/** Undefined if `path` is no folder, or not there, which reading it says. */
async function filesInFolder(path: string): Promise<string[] | undefined> {
  const isFolder = path !== '-' && (await stat(path).catch(() => undefined))?.isDirectory();
  if (isFolder !== true) return undefined;
  const entries = await readdir(path, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory() && MANIFEST_NAME.test(entry.name))
    .map(({ name }) => name);
  if (names.length > 0) return names.toSorted().map((name) => join(path, name));
  throw new RefitError('REFIT_FILE', `${path}: has no file that ends with .yaml, .yml or .json`);
}
