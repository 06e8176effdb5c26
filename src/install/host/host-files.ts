/** The files that `refit install agent` writes: replaced at once, and told from those of others by a mark. */
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncPath } from '../../agent/state/durable-files.ts';
import { unless } from '../../agent/state/trusted-path.ts';
import { messageOf, RefitError } from '../../util/errors.ts';

const MARK =
  '# `refit install agent` wrote this file, and writes it anew: put changes into a drop-in.\n';

/** Undefined where there is no such file; a masked unit is somebody else's. */
export async function hasMark(path: string): Promise<boolean | undefined> {
  return (await unless('ENOENT', readFile(path, 'utf8')))?.includes(MARK);
}

/** The mark stands after a line that names an interpreter. */
export async function placeText(path: string, mode: number, text: string): Promise<void> {
  const marked = text.replace(/^(?:#!.*\n)?/, (first) => first + MARK);
  await placeFile(path, mode, async (next) => await writeFile(next, marked, { mode: 0o600 }));
}

/** `fill` writes to the path that it gets. Leaves nothing behind when that fails. */
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

/** A system call that fails in `work` is no bug of Refit. */
export function onHost<T extends readonly unknown[]>(
  work: (...args: T) => Promise<void>,
): typeof work {
  return async (...args) =>
    await work(...args).catch((error: NodeJS.ErrnoException) => {
      if (error.syscall === undefined) throw error;
      hostFault('this host refuses', error);
    });
}

/** For what the host refuses, such as on a full disk. */
export function hostFault(what: string, cause: unknown): never {
  const hint = 'fix that on this host, and run the same command again';
  throw new RefitError('REFIT_INSTALL', `${what}: ${messageOf(cause)}`, { cause, hint });
}
