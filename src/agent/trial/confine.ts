/** Finds the programs of this host that remove privileges from another program before it starts. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Confinement {
  /**
   * The command that runs the program, without the program itself. It may begin with `setpriv`, which changes the user.
   * If it does, the caller must not change the user as well.
   */
  readonly prefix: readonly string[];
  readonly changesUser: boolean;
  /**
   * The programs that this host lacks, or that do not work on this host. The program under trial keeps the rights that
   * they would remove.
   */
  readonly missing: readonly string[];
}

const PATIENCE_MS = 2_000;

/**
 * The directories in which the agent looks for programs. The agent does so itself, because with an empty environment
 * the system looks only in /bin and /usr/bin.
 */
const FOLDERS = ['/usr/sbin', '/usr/bin', '/sbin', '/bin', '/usr/local/sbin', '/usr/local/bin'];

/**
 * Finds the programs of this host that keep the trial from gaining new privileges, from using the network and from
 * reading the agent's keys. If `user` is given, the program runs as that user. Only root may pass `user`.
 */
export async function confinementFor(
  user: number | undefined,
  folders: readonly string[] = FOLDERS,
): Promise<Confinement> {
  const pathOf = (name: string): string =>
    folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ??
    join('/usr/bin', `no-${name}`);
  const identity =
    user === undefined ? [] : [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  // Guard trial-rights. A set-user-id program gives no rights to the trial run.
  const rights = [pathOf('setpriv'), '--no-new-privs', ...identity];
  const network = [pathOf('unshare'), '--net'];
  // The program gets a session keyring of its own. Otherwise it could read the agent's session keyring even after a
  // change of the user.
  const keys = [pathOf('keyctl'), 'session', '-'];
  const hasRights = await works(rights);
  const hasNetwork = hasRights && user !== undefined && (await works([...network, ...rights]));
  const before = [...(hasNetwork ? network : []), ...(hasRights ? rights : [])];
  const hasKeys = await works([...before, ...keys]);
  const missing = [
    ...(hasRights ? [] : ['setpriv']),
    ...(hasNetwork || user === undefined ? [] : ['unshare']),
    ...(hasKeys ? [] : ['keyctl']),
  ];
  return {
    missing,
    prefix: [...before, ...(hasKeys ? keys : [])],
    changesUser: hasRights && user !== undefined,
  };
}

async function works([program = '', ...args]: readonly string[]): Promise<boolean> {
  const child = spawn(program, [...args, 'true'], {
    stdio: 'ignore',
    cwd: '/',
    env: {},
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
  });
  return await new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
