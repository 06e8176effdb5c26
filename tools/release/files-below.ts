/** Lists what a folder contains. */
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** Returns the paths of all files, relative to the folder and sorted. */
export async function filesBelow(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile());
  return files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).toSorted();
}
