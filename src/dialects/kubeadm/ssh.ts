/** Owns running scripts on hosts through the system's own ssh client: one shared connection a host, host keys always checked. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RefitError } from '../../util/errors.ts';
import type { Manifest, ManifestHost } from './manifest.ts';

export interface ShellResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Shells {
  /** Runs a POSIX script as root. @throws RefitError REFIT_SSH where the host cannot be reached or is not who it was */
  run(host: ManifestHost, script: string): Promise<ShellResult>;
  /** Ends the shared connections; scripts that still run go on on their hosts. */
  close(): Promise<void>;
}

/** Seconds: a host in the same network answers at once. */
const CONNECT_TIMEOUT = 10;
/** Seconds that a shared connection outlives its last script, should this process be killed. */
const PERSIST = 15;
/** ssh's own exit code for everything that is not the script's. */
const SSH_FAILED = 255;

/** The sockets of shared connections get a directory of their own, since whoever can use them is root on the hosts. */
export async function openShells(ssh: Manifest['ssh']): Promise<Shells> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-ssh-'));
  /** By name of the host; numbered, as the path of a socket ends after some hundred bytes. */
  const used = new Map<string, string>();
  const socketOf = (name: string): string => {
    const socket = used.get(name) ?? join(directory, String(used.size));
    used.set(name, socket);
    return socket;
  };
  return {
    async run(host, script) {
      const user = host.user ?? ssh.user ?? 'root';
      const command = user === 'root' ? 'sh -s' : 'sudo -n sh -s';
      const result = await call([...argumentsOf(host, ssh, socketOf(host.name)), command], script);
      if (result.code !== SSH_FAILED) return result;
      throw new RefitError(
        'REFIT_SSH',
        `${host.name} (${host.address ?? host.name}): ${reasonOf(result.stderr, user)}`,
      );
    },
    async close() {
      const end = async (socket: string): Promise<unknown> =>
        await call(['-o', `ControlPath=${socket}`, '-O', 'exit', 'host'], '').catch(() => undefined);
      await Promise.all([...used.values()].map(end));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function argumentsOf(host: ManifestHost, ssh: Manifest['ssh'], socket: string): string[] {
  const port = host.port ?? ssh.port;
  const identity = host.identityFile ?? ssh.identityFile;
  const options: Record<string, string | number> = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    UpdateHostKeys: 'no',
    ...(ssh.knownHostsFile ? { UserKnownHostsFile: ssh.knownHostsFile, GlobalKnownHostsFile: 'none' } : {}),
    ControlMaster: 'auto',
    ControlPath: socket,
    ControlPersist: PERSIST,
    ConnectTimeout: CONNECT_TIMEOUT,
    ServerAliveInterval: 15,
    ...(identity ? { IdentityFile: identity, IdentitiesOnly: 'yes' } : {}),
    ...ssh.options,
  };
  return [
    '-T',
    ...(ssh.configFile ? ['-F', ssh.configFile] : []),
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    ...(port ? ['-p', String(port)] : []),
    '-l',
    host.user ?? ssh.user ?? 'root',
    '--',
    host.address ?? host.name,
  ];
}

async function call(args: readonly string[], input: string): Promise<ShellResult> {
  return await new Promise((resolve, reject) => {
    const child = spawn('ssh', args, { stdio: 'pipe' });
    const text = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => (text[name] += chunk));
    }
    child.once('error', (error) =>
      reject(new RefitError('REFIT_SSH', `the ssh client of this machine cannot be started: ${error.message}`)),
    );
    // The shared connection stays behind and keeps standard error open, so `close` would come only when that ends too.
    const ended = [once(child, 'exit'), once(child.stdout, 'close')];
    const settled = (): void => void setImmediate(() => resolve({ code: child.exitCode ?? SSH_FAILED, ...text }));
    Promise.all(ended).then(() => setImmediate(settled), reject);
    // ssh may end before it has read its input; its exit code tells the story.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

function reasonOf(stderr: string, user: string): string {
  if (stderr.includes('HOST IDENTIFICATION HAS CHANGED')) return 'its host key is not the one that is known of it';
  if (/host key is known/.test(stderr)) return 'its host key is not known: add it to the known hosts after checking it';
  if (stderr.includes('Permission denied')) return `it does not let ${user} in with this key`;
  const lines = stderr.trim().split('\n');
  return lines.at(-1)?.trim() || 'ssh ended without a word';
}
