/** Gives a file what a copy leaves behind: mode, owner, ACL, SELinux context, capabilities and other extended attributes. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { messageOf } from '../../util/errors.ts';

/** There only where the kernel has SELinux; without it, coreutils refuses to copy a context. */
const SELINUX = '/sys/fs/selinux/enforce';
const PATIENCE_MS = 60_000;

export interface AttributeTools {
  /** Told when this host has no program that copies attributes: then none are copied. */
  readonly cannot: (problem: string) => void;
}

/** Node.js has no calls for extended attributes, so cp of coreutils does it. Rejects if any of them cannot be set on `to`. */
export async function copyAttributes(
  from: string,
  to: string,
  { cannot }: AttributeTools,
): Promise<void> {
  // A step that is repeated after a crash finds two names of one file, which cp refuses.
  if (await isSameFile(from, to)) return;
  const context = existsSync(SELINUX) ? ',context' : '';
  const args = ['--attributes-only', `--preserve=mode,ownership,xattr${context}`, '--', from, to];
  const env = { ...process.env, LC_ALL: 'C' };
  try {
    await promisify(execFile)('cp', args, { env, timeout: PATIENCE_MS });
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim() || messageOf(error);
    // As on hosts with BusyBox.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && !/unrecognized option/.test(said))
      throw new Error(
        `${to} cannot get the owner, mode and extended attributes of ${from}: ${said}`,
        { cause: error },
      );
    cannot(`cp on this host cannot copy extended attributes: ${said.split('\n')[0]}`);
  }
}

async function isSameFile(path: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all(
    [path, other].map(async (each) => await stat(each, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino;
}
