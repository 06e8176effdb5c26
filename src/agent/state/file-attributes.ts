/** Gives a file what a copy leaves behind: mode, owner, ACL, SELinux context, capabilities and other extended attributes. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../util/errors.ts';

/** There only where the kernel has SELinux; without it, coreutils refuses to copy a context. */
const SELINUX = '/sys/fs/selinux/enforce';
const PATIENCE_MS = 60_000;

/** From all that is copied to the least: a cp knows options that it was built without, or that the kernel refuses. */
const CHOICES = ['mode,ownership,xattr', 'mode,ownership'];

/** They sign the content of the old file: a kernel that checks signatures would refuse to run the new one. */
const SIGNATURES = ['security.ima', 'security.evm'];

export interface AttributeTools {
  /** Receives what this host has no program for: the file is then without these attributes. */
  readonly cannot: (problem: string) => void;
  /** True if both files have the same content: then its signatures hold for both. */
  readonly isSameContent?: boolean;
}

/**
 * Node.js has no calls for extended attributes, so cp of coreutils does it. Rejects if an attribute cannot be set on `to`, although this
 * host can copy attributes: two files of our own in the same folder tell.
 */
export async function copyAttributes(
  from: string,
  to: string,
  { cannot, isSameContent = false }: AttributeTools,
): Promise<void> {
  // A step that is repeated after a crash finds two names of one file, which cp refuses.
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

/** What cp says; undefined if it copied everything. */
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

/** Also true if it cannot be tried: then nothing excuses the failure. */
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

/** Most files have none, and hosts that sign files have the program: no failure matters. */
async function removeSignatures(file: string): Promise<void> {
  for (const name of SIGNATURES)
    await promisify(execFile)('setfattr', ['-x', name, '--', file], { timeout: PATIENCE_MS }).catch(
      () => undefined,
    );
}
