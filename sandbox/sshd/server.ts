/** The contract of an SSH server for one stand-in host, and the keys of both sides. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../tools/controlplane/run.ts';
import type { StandInHost } from './stand-in-host.ts';

export interface SshServer {
  readonly port: number;
  /** A line for a file of known hosts. */
  readonly knownHost: string;
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly host: StandInHost;
  /** The directory for the keys of this host. No other host uses it. */
  readonly directory: string;
  /** The path of the public key that the server accepts. */
  readonly clientKey: string;
}

export type StartServer = (options: ServerOptions) => Promise<SshServer>;

export const ADDRESS = '127.0.0.1';
export const ENTER_HOST = join(import.meta.dirname, 'enter-host.sh');

/** Creates a key pair in `path` and `path.pub`. */
export async function makeKey(path: string): Promise<void> {
  const { ok, stderr } = await run('ssh-keygen', [
    '-q',
    '-t',
    'ed25519',
    '-N',
    '',
    '-C',
    'refit-test',
    '-f',
    path,
  ]);
  if (!ok) throw new Error(`ssh-keygen, which comes with the ssh client, failed: ${stderr.trim()}`);
}

export async function knownHostOf(port: number, keyPath: string): Promise<string> {
  const [type, key] = (await readFile(`${keyPath}.pub`, 'utf8')).split(' ');
  return `[${ADDRESS}]:${port} ${type} ${key}\n`;
}
