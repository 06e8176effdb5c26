/** Finds out whether somebody else changed or removed a file that the agent keeps. */
import type { Files } from '../state/durable-files.ts';
import { hashFile, stampIn } from './hash-file.ts';

export interface KnownFile {
  readonly path: string;
  readonly sha256: string;
  /** The stamp of the file when its hash last matched. It is absent in records of older agents. */
  readonly stamp?: string;
}

export type FileChange = 'Changed' | 'Removed' | { readonly stamp: string };

/**
 * Returns a function that reports whether somebody else changed or removed the file. For an unchanged file it returns
 * the stamp. It hashes the file only if the stamp has changed since the last comparison, because a new name changes the
 * stamp of a file but not its hash.
 */
export function changeFinder(
  files: Pick<Files, 'lstat' | 'open'>,
): (known: KnownFile) => Promise<FileChange> {
  const wrong = new Map<string, string>();
  return async ({ path, sha256, stamp: before }) => {
    const found = await files.lstat(path, { bigint: true }).catch(() => undefined);
    if (found === undefined) return 'Removed';
    if (!found.isFile()) return 'Changed';
    const stamp = stampIn(found);
    if (stamp === before) return { stamp };
    if (stamp === wrong.get(path)) return 'Changed';
    // Guard kept-reported. No changed file is reported as the way back.
    if ((await hashFile(path, files).catch(() => undefined)) === sha256) return { stamp };
    wrong.set(path, stamp);
    return 'Changed';
  };
}
