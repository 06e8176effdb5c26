/** Puts the program where the agent's service finds it: the one-file binary is copied, a package must stay where it is. */
import { constants } from 'node:fs';
import { copyFile, open, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSea } from 'node:sea';
import { hashFile } from '../../agent/download/hash-file.ts';
import { assertTrustedPath } from '../../agent/state/trusted-path.ts';
import { hostFault, placeFile } from './host-files.ts';

/** For an agent, which runs on every node for months and computes little: few threads, no signal that opens a debugger. */
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

/** How to run it: as it is, and as an agent, which is as small as it can be. What is one file, `placeBinary` copies. */
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
  // A later Node.js may not know it any more, and would refuse to start.
  const flags = AGENT_FLAGS.filter((flag) => flag !== '--no-harmony-temporal');
  return { refit: [node, script], agent: [node, ...flags, script], isOneFile: false };
}

/** Whatever lies at its path by now, this is the program that runs. */
const SELF = '/proc/self/exe';

/** Undefined where there is none; true when it is a copy of this one. */
export async function isOwnBinary(): Promise<boolean | undefined> {
  const there = await hashFile(BINARY, { open }).catch((cause: unknown) =>
    hostFault(`cannot read ${BINARY}`, cause),
  );
  return there === undefined ? undefined : there === (await hashFile(SELF, { open }));
}

export async function placeBinary(): Promise<void> {
  await assertOwnedByRoot(dirname(BINARY));
  await placeFile(
    BINARY,
    0o755,
    async (next) => await copyFile(SELF, next, constants.COPYFILE_EXCL),
  );
}

/** Root runs it, or the commands that it names: nobody else may be able to change it. */
export async function assertOwnedByRoot(path: string): Promise<void> {
  await assertTrustedPath(path).catch((cause: unknown) => hostFault(`cannot trust ${path}`, cause));
}
