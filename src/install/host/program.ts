/**
 * Puts the program where the service of the agent finds it. The one-file binary is copied. A package is not copied, so
 * its files must stay where they are.
 */
import { constants } from 'node:fs';
import { copyFile, open, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSea } from 'node:sea';
import { hashFile } from '../../agent/download/hash-file.ts';
import { assertTrustedPath } from '../../agent/state/trusted-path.ts';
import { hostFault, placeFile } from './host-files.ts';

/**
 * Node.js flags for an agent, which runs on every node for months and computes little: they limit the number of
 * threads, and prevent a signal from opening a debugger.
 */
export const AGENT_FLAGS = [
  '--jitless',
  '--lite-mode',
  '--no-node-snapshot',
  '--v8-pool-size=0',
  '--expose-gc',
  '--disable-sigusr1',
  '--use-openssl-ca',
  '--no-harmony-temporal',
] as const;

export const BINARY = '/usr/local/bin/refit';

/**
 * Returns the command line of this program, and the command line of an agent, which needs as little memory as possible.
 * If `isOneFile` is true, `placeBinary` must copy the program.
 */
export async function ownProgram() {
  if (isSea())
    return {
      refit: [BINARY],
      agent: [BINARY, `--node-options=${AGENT_FLAGS.join(' ')}`],
      isOneFile: true,
    };
  const node = await realpath(process.execPath);
  const script = await realpath(process.argv[1] ?? '');
  await assertOwnedByRoot(node);
  await assertOwnedByRoot(script);
  // A later version of Node.js may not support this flag, and would then refuse to start.
  const flags = AGENT_FLAGS.filter((flag) => flag !== '--no-harmony-temporal');
  return { refit: [node, script], agent: [node, ...flags, script], isOneFile: false };
}

/** The path of the running program. This path remains correct even if the original file has been replaced. */
const SELF = '/proc/self/exe';

/** Returns true if the file is a copy of this binary, and undefined if there is no such file. */
export async function isOwnBinary(path = BINARY): Promise<boolean | undefined> {
  const there = await hashFile(path, { open }).catch((cause: unknown) =>
    hostFault(`cannot read ${path}`, cause),
  );
  return there === undefined ? undefined : there === (await hashFile(SELF, { open }));
}

/** Copies the running one-file binary to the path. */
export async function placeBinary(path = BINARY): Promise<void> {
  await assertOwnedByRoot(dirname(path));
  await placeFile(path, 0o755, async (next) => await copyFile(SELF, next, constants.COPYFILE_EXCL));
}

/** Rejects if anybody except root can change the file. Root runs this file, or the commands that the file contains. */
export async function assertOwnedByRoot(path: string): Promise<void> {
  await assertTrustedPath(path).catch((cause: unknown) => hostFault(`cannot trust ${path}`, cause));
}
