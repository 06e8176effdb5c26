/** Puts the program where the agent's service finds it: the one-file binary is copied, a package must stay where it is. */
import { constants } from 'node:fs';
import { chmod, copyFile, realpath, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isSea } from 'node:sea';
import { assertTrustedPath } from '../../agent/state/trusted-path.ts';
import { messageOf, RefitError } from '../../util/errors.ts';

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

export type Program = Awaited<ReturnType<typeof ownProgram>>;

/** How to run it: as it is, and as an agent, which is as small as it can be. What is one file, `placeBinary` copies. */
export async function ownProgram() {
  if (isSea()) return { refit: [BINARY], agent: [BINARY, `--node-options=${AGENT_FLAGS.join(' ')}`], isOneFile: true };
  const [node, script] = [await realpath(process.execPath), await realpath(process.argv[1] ?? '')];
  await assertOwnedByRoot(node);
  await assertOwnedByRoot(script);
  // A later Node.js may not know it any more, and would refuse to start.
  const flags = AGENT_FLAGS.filter((flag) => flag !== '--no-harmony-temporal');
  return { refit: [node, script], agent: [node, ...flags, script], isOneFile: false };
}

/** Copies this binary to its place, unless it runs from there. True when it was copied. */
export async function placeBinary(): Promise<boolean> {
  const own = await realpath(process.execPath);
  if (own === (await realpath(BINARY).catch(() => undefined))) return false;
  await assertOwnedByRoot(dirname(BINARY));
  const next = `${BINARY}.new`;
  await rm(next, { force: true });
  // Whatever lies at its path by now, this is the program that runs.
  await copyFile('/proc/self/exe', next, constants.COPYFILE_EXCL);
  await chmod(next, 0o755);
  await rename(next, BINARY);
  return true;
}

/** Root runs it, or the commands that it names: nobody else may be able to change it. */
export async function assertOwnedByRoot(path: string): Promise<void> {
  await assertTrustedPath(path).catch((cause: unknown) => {
    throw new RefitError('REFIT_INSTALL', messageOf(cause), { cause });
  });
}
