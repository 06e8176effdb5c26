/** Builds the one-file binary for this machine from the source as it is. */
import { existsSync } from 'node:fs';
import { cp, link, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildProgram } from '../../tools/build/refit.ts';
import { buildBinary } from '../../tools/release/binary.ts';
import { PLATFORMS, type Platform, readLock } from '../../tools/release/node-package.ts';

/**
 * The environment variable that names the directory of a binary that all test files of a run share. It may be absent.
 * The binary is shared because its build takes three CPU seconds.
 */
export const SHARED = 'REFIT_BUILT_ONE_FILE';
const NAME = 'refit';

/**
 * Puts the program into `directory`/program and the binary into `directory`/refit. Resolves with the path of the
 * binary. Nobody may change the binary.
 */
export async function buildOneFile(directory: string): Promise<string> {
  const shared = process.env[SHARED];
  if (shared === undefined) return await buildOwnFile(directory);
  if (!existsSync(shared)) await buildOnce(shared);
  await cp(join(shared, 'program'), join(directory, 'program'), { recursive: true });
  const binary = join(directory, NAME);
  await link(join(shared, NAME), binary);
  return binary;
}

/**
 * Builds the shared binary. Test processes do not wait for each other: the result of the first process that finishes is
 * used.
 */
async function buildOnce(shared: string): Promise<void> {
  const own = await mkdtemp(`${shared}-`);
  try {
    await buildOwnFile(own);
    await rename(own, shared);
  } catch (error) {
    await rm(own, { recursive: true });
    if (!existsSync(shared)) throw error;
  }
}

/**
 * Builds the same files without sharing them, so that no other process runs this binary. For tests that measure how
 * much of the binary is in memory.
 */
export async function buildOwnFile(directory: string): Promise<string> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined) throw new Error(`no binary is made for ${process.arch}`);
  await buildProgram(join(directory, 'program'));
  return await packOneFile(platform, directory, NAME);
}

/** Builds another binary, `directory`/`name`, from the program that `buildOneFile` left. Resolves with its path. */
export async function packOneFile(
  platform: Platform,
  directory: string,
  name: string,
): Promise<string> {
  const binary = join(directory, name);
  await buildBinary(
    platform,
    await readLock(join(import.meta.dirname, '../..')),
    join(directory, 'program'),
    binary,
  );
  return binary;
}
