/**
 * Copies to a file what a copy of its bytes leaves out: mode, owner, ACL, SELinux context, capabilities and other
 * extended attributes.
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
 * The values of `--preserve`, the most complete first. A cp accepts options that it was built without, or that the
 * kernel refuses, and then fails.
 */
const CHOICES = ['mode,ownership,xattr', 'mode,ownership'];

/**
 * These attributes sign the content of the old file. A kernel that checks signatures would refuse to run the new one.
 */
const SIGNATURES = ['security.ima', 'security.evm'];

export interface AttributeTools {
  /** The agent calls this with a sentence that says which attributes no program of this host can copy. The file then lacks them. */
  readonly cannot: (problem: string) => void;
  /** True if both files have the same content. Then the signatures of one are right for the other. */
  readonly isSameContent?: boolean;
}

/**
 * Copies the attributes with cp of coreutils, because Node.js has no calls for extended attributes. Rejects if an
 * attribute cannot be set on `to` although this host can copy it, which is tried with two files of the agent in the
 * same directory.
 */
export async function copyAttributes(
  from: string,
  to: string,
  { cannot, isSameContent = false }: AttributeTools,
): Promise<void> {
  // A step that is repeated after a crash may find two names of one file. cp refuses such a copy.
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
 * Returns true if cp can copy these attributes between two files in the directory. Also returns true if that cannot be
 * tried, because then nothing shows that this host cannot copy them.
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
