/** Finds configuration of containerd on a host of k0s that a later k0s refuses. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** k0s reads the files in this folder, whatever its data directory is. */
const FOLDER = '/etc/k0s/containerd.d';
const MOST_BYTES = 1024 * 1024;
/** In a table, the same word may mean something else, so the search ends at the first table. */
const VERSION = /^[ \t]*version[ \t]*=[ \t]*(\S+)/m;
const CRI_OF_CONTAINERD_1 = 'io.containerd.grpc.v1.cri';

/**
 * Returns the names of the files that are written for containerd 1, by the rules of k0s 1.36: they name another version of
 * the format than 3, or the former plugin. Files that cannot be read are left out.
 */
export function oldContainerdDropIns(folder = FOLDER): string[] {
  return namesIn(folder).filter((name) => {
    const text = textOf(join(folder, name))?.replaceAll(/^[ \t]*#.*$/gm, '');
    if (text === undefined) return false;
    const [head = ''] = text.split(/^[ \t]*\[/m);
    const [, version = '3'] = VERSION.exec(head) ?? [];
    return version !== '3' || text.includes(CRI_OF_CONTAINERD_1);
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.toml'))
      .toSorted();
  } catch {
    // Most hosts have no such folder.
    return [];
  }
}

function textOf(file: string): string | undefined {
  try {
    const found = statSync(file);
    return found.isFile() && found.size <= MOST_BYTES ? readFileSync(file, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
