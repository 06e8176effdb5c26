/**
 * Writes the files of `refit install agent`. They are replaced atomically, and a mark distinguishes them from files
 * that Refit did not write.
 */
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncPath } from '../../agent/state/durable-files.ts';
import { unless } from '../../agent/state/trusted-path.ts';
import { messageOf, RefitError } from '../../util/errors.ts';

const MARK =
  '# `refit install agent` wrote this file and will overwrite it: put changes into a drop-in.\n';

/**
 * Returns whether the file has the mark, or undefined if it does not exist. A masked unit has no
 * mark.
 */
export async function hasMark(path: string): Promise<boolean | undefined> {
  return (await unless('ENOENT', readFile(path, 'utf8')))?.includes(MARK);
}

/**
 * Writes a text with the mark. If the text begins with a line that names an interpreter, the mark follows that line;
 * otherwise the text begins with the mark.
 */
export async function placeText(path: string, mode: number, text: string): Promise<void> {
  const marked = text.replace(/^(?:#!.*\n)?/, (first) => first + MARK);
  await placeFile(path, mode, async (next) => await writeFile(next, marked, { mode: 0o600 }));
}

/**
 * Replaces a file atomically. `fill` writes the new content to the path that it receives. If `fill` fails, the
 * incomplete file is removed.
 */
export async function placeFile(
  path: string,
  mode: number,
  fill: (next: string) => Promise<void>,
): Promise<void> {
  const next = `${path}.new`;
  try {
    await rm(next, { force: true });
    await fill(next);
    await chmod(next, mode);
    await syncPath(next);
    await rename(next, path);
    await syncPath(dirname(path));
  } catch (error) {
    await rm(next, { force: true }).catch(() => undefined);
    hostFault(`cannot write ${path}`, error);
  }
}

/**
 * Returns a function that rejects with REFIT_INSTALL if a system call in `work` fails. Such a failure is a problem of
 * the host, and not a bug in Refit.
 */
export function onHost<T extends readonly unknown[]>(
  work: (...args: T) => Promise<void>,
): typeof work {
  return async (...args) =>
    await work(...args).catch((error: NodeJS.ErrnoException) => {
      if (error.syscall === undefined) throw error;
      hostFault('this host refuses', error);
    });
}

/** Throws REFIT_INSTALL for a problem of the host, such as a full disk. */
export function hostFault(what: string, cause: unknown): never {
  const hint = 'fix that on this host, and run the same command again';
  throw new RefitError('REFIT_INSTALL', `${what}: ${messageOf(cause)}`, { cause, hint });
}
