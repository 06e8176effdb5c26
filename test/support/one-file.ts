/** Builds the one-file binary for this machine from the source as it is. */
import { existsSync } from 'node:fs';
import { cp, link, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildProgram } from '../../tools/build/refit.ts';
import { buildBinary } from '../../tools/release/binary.ts';
import { PLATFORMS, type Platform, readLock } from '../../tools/release/node-package.ts';

/** Names a directory for a binary that all test files of a run share, where there is one: to build it takes three CPU seconds. */
export const SHARED = 'REFIT_BUILT_ONE_FILE';
const NAME = 'refit';

/** Puts the program into `directory`/program and the binary, which nobody may change, to `directory`/refit; its path. */
export async function buildOneFile(directory: string): Promise<string> {
  const shared = process.env[SHARED];
  if (shared === undefined) return await buildOwnFile(directory);
  if (!existsSync(shared)) await buildOnce(shared);
  await cp(join(shared, 'program'), join(directory, 'program'), { recursive: true });
  const binary = join(directory, NAME);
  await link(join(shared, NAME), binary);
  return binary;
}

/** Test processes do not wait for each other: the first to end wins. */
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

/** The same, where no other process runs it: for who counts how much of it is in memory. */
export async function buildOwnFile(directory: string): Promise<string> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined) throw new Error(`no binary is made for ${process.arch}`);
  await buildProgram(join(directory, 'program'));
  return await packOneFile(platform, directory, NAME);
}

/** Another binary of the program that `buildOneFile` left, as `directory`/`name`; its path. */
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
