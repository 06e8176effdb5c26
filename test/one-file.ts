/** Builds the one-file binary for this machine from the source as it is. */
import { join } from 'node:path';
import { buildProgram } from '../tools/build/refit.ts';
import { buildBinary } from '../tools/release/binary.ts';
import { PLATFORMS, type Platform, readLock } from '../tools/release/node-package.ts';

/** Writes the program to `directory`/program and the binary to `directory`/refit, in about two seconds; its path. */
export async function buildOneFile(directory: string): Promise<string> {
  const platform = PLATFORMS.find(({ arch }) => arch === process.arch);
  if (platform === undefined) throw new Error(`no binary is made for ${process.arch}`);
  await buildProgram(join(directory, 'program'));
  return await packOneFile(platform, directory, 'refit');
}

/** Another binary of the program that `buildOneFile` wrote, as `directory`/`name`; its path. */
export async function packOneFile(platform: Platform, directory: string, name: string): Promise<string> {
  const binary = join(directory, name);
  await buildBinary(platform, await readLock(join(import.meta.dirname, '..')), join(directory, 'program'), binary);
  return binary;
}
