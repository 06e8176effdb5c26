/**
 * Copies to a file everything that a copy of its bytes does not include: mode, owner, ACL, SELinux context,
 * capabilities and other extended attributes.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../util/errors.ts';

/** This file exists only if the kernel has SELinux. Without SELinux, coreutils refuses to copy a context. */
const SELINUX = '/sys/fs/selinux/enforce';
const PATIENCE_MS = 60_000;

/**
 * The values of `--preserve`, in the order in which they are tried. The most complete value comes first. `cp` may fail
 * with it: `cp` also accepts options that it was built without, or that the kernel refuses.
 */
const CHOICES = ['mode,ownership,xattr', 'mode,ownership'];

/**
 * These attributes are signatures of the content of the old file. With them, a kernel that checks signatures would
 * refuse to run the new file.
 */
const SIGNATURES = ['security.ima', 'security.evm'];

export interface AttributeTools {
  /**
   * The agent calls this if no program of this host can copy some attributes, so that the file lacks them. `problem` is
   * a sentence that names these attributes.
   */
  readonly cannot: (problem: string) => void;
  /** True if both files have the same content. The signatures of one file are then valid for the other file as well. */
  readonly isSameContent?: boolean;
}

/**
 * Copies the attributes with cp of coreutils, because Node.js has no functions for extended attributes. Rejects if an
 * attribute cannot be set on `to` although this host can copy it. To find out whether the host can copy it, the
 * function copies it between two files of its own in the same directory.
 */
export async function copyAttributes(
  from: string,
  to: string,
  { cannot, isSameContent = false }: AttributeTools,
): Promise<void> {
  // When a step is repeated after a crash, both paths may be names of one file. cp refuses to copy a file to itself.
  if (await isSameFile(from, to)) return;
  for (const preserve of existsSync(SELINUX) ? [`${CHOICES[0]},context`, ...CHOICES] : CHOICES) {
    const said = await failureOf(preserve, from, to);
    if (said === undefined) {
      if (preserve.includes('xattr') && !isSameContent) await removeSignatures(to);
      return;
    }
    if (await works(preserve, dirname(to)))
      throw new Error(
        `${to} cannot get the owner, mode and extended attributes of ${from}: ${said}`,
      );
    cannot(`cp on this host cannot copy ${preserve.replaceAll(',', ', ')}: ${said.split('\n')[0]}`);
  }
}

/** Returns the error of cp; undefined if it copied everything. */
async function failureOf(preserve: string, from: string, to: string): Promise<string | undefined> {
  const args = ['--attributes-only', `--preserve=${preserve}`, '--', from, to];
  const env = { ...process.env, LC_ALL: 'C' };
  try {
    await promisify(execFile)('cp', args, { env, timeout: PATIENCE_MS });
    return undefined;
  } catch (error) {
    return (error as { stderr?: string }).stderr?.trim() || messageOf(error);
  }
}

async function isSameFile(path: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all(
    [path, other].map(async (each) => await stat(each, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && a.dev === b?.dev && a.ino === b.ino;
}

/**
 * Returns true if cp can copy these attributes between two files in the directory. Also returns true if the test itself
 * fails, because then nothing proves that this host cannot copy them.
 */
async function works(preserve: string, folder: string): Promise<boolean> {
  const own = await mkdtemp(join(folder, '.refit-attributes-')).catch(() => undefined);
  if (own === undefined) return true;
  try {
    const from = join(own, 'from');
    const to = join(own, 'to');
    await writeFile(from, '');
    await writeFile(to, '');
    return (await failureOf(preserve, from, to)) === undefined;
  } catch {
    return true;
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

/**
 * Removes the signatures. Failures do not matter: most files have no signature, and hosts that sign files have the
 * program that removes signatures.
 */
async function removeSignatures(file: string): Promise<void> {
  for (const name of SIGNATURES)
    await promisify(execFile)('setfattr', ['-x', name, '--', file], { timeout: PATIENCE_MS }).catch(
      () => undefined,
    );
}
