/** Lists the changes that a command makes on a host's disk, in the order in which it makes them. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The present state of a file below a root. */
interface Seen {
  readonly hash: string;
  readonly inode: number;
  /** The time of the last change in milliseconds. A rename also sets it. */
  readonly changed: number;
}

export type Files = ReadonlyMap<string, Seen>;

export interface Change {
  /** The path, with `<stamp>` for the parts that differ from run to run. */
  readonly path: string;
  /**
   * `moved`: the content was at `from` before. `replaced`: another file took this path. `written`: the content of the
   * same file changed.
   */
  readonly how: 'made' | 'moved' | 'replaced' | 'written' | 'removed';
  readonly from?: string;
  /** Seconds after the first change. */
  readonly after: number;
}

const STAMP = /\d{4}(?:-\d\d){5}|\d{8,}/g;
/** The path of a copy of etcd's data. Only its folder counts, because the files in it belong to etcd. */
const COPY_OF_ETCD = /(\/kubeadm-backup-etcd-[^/]+)\/.*/;

/** Returns the given files and all files in the given folders. Leaves out paths that do not exist. */
export async function filesBelow(root: string, ...paths: readonly string[]): Promise<Files> {
  const files = new Map<string, Seen>();
  for (const path of (
    await Promise.all(paths.map(async (each) => await filesAt(join(root, each))))
  ).flat()) {
    const { ino, ctimeMs } = await lstat(path);
    const hash = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    files.set(path.slice(root.length), { hash, inode: ino, changed: ctimeMs });
  }
  return files;
}

async function filesAt(path: string): Promise<string[]> {
  if (!existsSync(path)) return [];
  if ((await lstat(path)).isFile()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

export function changesBetween(before: Files, after: Files): Change[] {
  const wasAt = new Map([...before].map(([path, { inode }]) => [inode, path]));
  const found: Omit<Change & { changed: number }, 'after'>[] = [];
  for (const [path, seen] of after) {
    const was = before.get(path);
    const { hash, inode, changed } = seen;
    if (was && was.inode === inode && was.hash === hash) continue;
    const from = wasAt.get(inode);
    if (was?.inode === inode) found.push({ path, how: 'written', changed });
    else if (from !== undefined && after.get(from)?.inode !== inode)
      found.push({ path, how: 'moved', from, changed });
    else found.push({ path, how: was ? 'replaced' : 'made', changed });
  }
  const first = Math.min(...found.map(({ changed }) => changed));
  const timed = found
    .toSorted((a, b) => a.changed - b.changed)
    .map(({ changed, path, ...how }) => ({
      path: normal(path),
      ...how,
      after: Math.round((changed - first) / 1000),
    }));
  // A file that was moved is not listed as removed, because the list already has it at its new path.
  const moved = new Set(found.map(({ from }) => from));
  const removed = [...before.keys()].filter((path) => !after.has(path) && !moved.has(path));
  const ends = removed.map((path): Change => ({ path: normal(path), how: 'removed', after: 0 }));
  const all: Change[] = [...timed, ...ends];
  return all.filter(({ path }, index) => all.findIndex((each) => each.path === path) === index);
}

const normal = (path: string): string => withoutStamps(path).replace(COPY_OF_ETCD, '$1');

export function withoutStamps(text: string): string {
  return text.replaceAll(STAMP, '<stamp>');
}
