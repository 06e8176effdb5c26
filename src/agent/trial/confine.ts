/** Finds the programs of this host that take rights away from another program before it starts. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Confinement {
  /** What stands before the program: with it, `setpriv` changes the user, so the caller must not. */
  readonly prefix: readonly string[];
  readonly changesUser: boolean;
  /** Programs that this host lacks, or that do not work here: what they take away stays. */
  readonly missing: readonly string[];
}

const PATIENCE_MS = 2_000;

/** With an empty environment the system seeks programs in /bin and /usr/bin alone. */
const FOLDERS = ['/usr/sbin', '/usr/bin', '/sbin', '/bin', '/usr/local/sbin', '/usr/local/bin'];

/** With `user`, only root may ask. No new rights, no network and no keys of the agent, as far as this host has programs for it. */
export async function confinementFor(
  user: number | undefined,
  folders: readonly string[] = FOLDERS,
): Promise<Confinement> {
  const pathOf = (name: string): string =>
    folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ??
    join('/usr/bin', `no-${name}`);
  const identity =
    user === undefined ? [] : [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const rights = [pathOf('setpriv'), '--no-new-privs', ...identity];
  const network = [pathOf('unshare'), '--net'];
  // A session keyring of its own: the one of the agent stays readable after a change of the user.
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
