/** Finds the programs of this host that take rights away from another program before it starts. */
import { spawn } from 'node:child_process';

export interface Confinement {
  /** What stands before the program: with it, `setpriv` changes the user, so the caller must not. */
  readonly prefix: readonly string[];
  readonly changesUser: boolean;
}

const PATIENCE_MS = 2_000;

/** With `user`, only root may ask. No new rights, no network and no keys of the agent, as far as this host has programs for it. */
export async function confinementFor(user: number | undefined): Promise<Confinement> {
  const identity =
    user === undefined ? [] : [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const rights = ['setpriv', '--no-new-privs', ...identity];
  const network = ['unshare', '--net'];
  // A session keyring of its own: the one of the agent stays readable after a change of the user.
  const keys = ['keyctl', 'session', '-'];
  const hasRights = await works(rights);
  const hasNetwork = hasRights && user !== undefined && (await works([...network, ...rights]));
  const before = [...(hasNetwork ? network : []), ...(hasRights ? rights : [])];
  const hasKeys = await works([...before, ...keys]);
  return {
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
