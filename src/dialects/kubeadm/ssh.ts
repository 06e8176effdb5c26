/** Runs scripts on hosts with the system's ssh client: one shared connection per host, host keys always checked. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatDuration } from '../../util/duration.ts';
import { RefitError } from '../../util/errors.ts';
import type { Manifest, ManifestHost } from './manifest.ts';
import { quoted } from './scripts.ts';

export interface ShellResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Its end closes the shared connections; running scripts continue on their hosts. */
export interface Shells extends AsyncDisposable {
  /** Runs a POSIX script as root. @throws RefitError REFIT_SSH if the host is unreachable, its key is wrong, or it does not end */
  run(host: ManifestHost, script: string, patienceMs?: number): Promise<ShellResult>;
}

/** Seconds. */
const CONNECT_TIMEOUT = 10;
/** Seconds that a shared connection stays open after its last script, if this process is killed. */
const PERSIST = 15;
/** ssh's exit code for its own errors. */
const SSH_FAILED = 255;
/** Somebody may own a host: it must neither fill our memory, nor hold us for ever. A step may wait half an hour for another. */
const [MOST_CHARACTERS, PATIENCE_MS] = [1024 * 1024, 2 * 3_600_000];

/** The sockets are in a private directory, since access to them is root access to the hosts. */
export async function openShells(ssh: Manifest['ssh']): Promise<Shells> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-ssh-'));
  /** By host name; numbered, since socket paths are limited to about 100 bytes. */
  const used = new Map<string, string>();
  const socketOf = (name: string): string => {
    const socket = used.get(name) ?? join(directory, String(used.size));
    used.set(name, socket);
    return socket;
  };
  return {
    async run(host, script, patienceMs = PATIENCE_MS) {
      const user = host.user ?? ssh.user ?? 'root';
      const command = user === 'root' ? 'sh -s' : 'sudo -n sh -s';
      const path = host.path ?? ssh.path;
      const input = path === undefined ? script : `PATH=${quoted(path)}\nexport PATH\n${script}`;
      const result = await call([...argumentsOf(host, ssh, socketOf(host.name)), command], input, patienceMs);
      if (result.code !== SSH_FAILED) return result;
      const through = host.bastion ? ` through ${host.bastion.address}` : '';
      const where = `${host.name} (${host.address ?? host.name}${through})`;
      throw new RefitError('REFIT_SSH', `${where}: ${reasonOf(result.stderr, user)}`);
    },
    async [Symbol.asyncDispose]() {
      const end = async (socket: string): Promise<unknown> =>
        await call(['-o', `ControlPath=${socket}`, '-O', 'exit', 'host'], '', PATIENCE_MS).catch(() => undefined);
      await Promise.all([...used.values()].map(end));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Without a socket: of a bastion, on the way to a host. */
function argumentsOf({ bastion, ...host }: ManifestHost, ssh: Manifest['ssh'], socket?: string): string[] {
  const port = host.port ?? ssh.port;
  const identity = host.identityFile ?? ssh.identityFile;
  // ssh's own ProxyJump would give the bastion neither our options nor our key.
  const toBastion = bastion && argumentsOf({ ...host, ...bastion }, ssh).map((each) => each.replaceAll('%', '%%'));
  const way = toBastion && ['ssh', '-W', '[%h]:%p', ...toBastion].map(quoted).join(' ');
  const options: Record<string, string | number> = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    UpdateHostKeys: 'no',
    // Root on one host must not log in to others with the caller's keys.
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ...(ssh.knownHostsFile ? { UserKnownHostsFile: ssh.knownHostsFile, GlobalKnownHostsFile: 'none' } : {}),
    ...(socket ? { ControlMaster: 'auto', ControlPath: socket, ControlPersist: PERSIST } : { ControlPath: 'none' }),
    ConnectTimeout: CONNECT_TIMEOUT,
    ServerAliveInterval: 15,
    ...(identity ? { IdentityFile: identity, IdentitiesOnly: 'yes' } : {}),
    ...(way ? { ProxyCommand: way } : {}),
    ...ssh.options,
    ...host.options,
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

async function call(args: readonly string[], input: string, patienceMs: number): Promise<ShellResult> {
  return await new Promise((resolve, reject) => {
    const child = spawn('ssh', args, { stdio: 'pipe' });
    const text = { stdout: '', stderr: '' };
    let broken: string | undefined;
    const giveUp = (why: string): void => {
      broken ??= why;
      child.kill('SIGKILL');
      // The shared connection holds it, too.
      child.stdout.destroy();
    };
    const late = setTimeout(giveUp, patienceMs, `the script did not end within ${formatDuration(patienceMs)}`).unref();
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        if (text[name].length < MOST_CHARACTERS) text[name] += chunk;
        else giveUp('it printed more than 1 MiB');
      });
    }
    child.once('error', (error) =>
      reject(new RefitError('REFIT_SSH', `cannot start ssh on this machine: ${error.message}`)),
    );
    // The shared connection keeps standard error open, so the event `close` would come too late.
    const ended = [once(child, 'exit'), once(child.stdout, 'close')];
    const settled = (): void => {
      clearTimeout(late);
      if (broken === undefined) resolve({ code: child.exitCode ?? SSH_FAILED, ...text });
      else resolve({ code: SSH_FAILED, stdout: '', stderr: broken });
    };
    Promise.all(ended).then(() => setImmediate(() => setImmediate(settled)), reject);
    // ssh may exit before it has read its input; the exit code says why.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

function reasonOf(stderr: string, user: string): string {
  if (stderr.includes('HOST IDENTIFICATION HAS CHANGED'))
    return 'its host key has changed: check the host, then update the known hosts';
  if (/host key is known/.test(stderr)) return 'its host key is unknown: check it, then add it to the known hosts';
  if (stderr.includes('Permission denied')) return `login as ${user} is denied; check user and identityFile`;
  // ssh swallows what the one on the way to the bastion says.
  if (stderr.includes('UNKNOWN port 65535'))
    return 'no connection through its bastion: check that both are up, and the host key, user and key of the bastion';
  const lines = stderr.trim().split('\n');
  return lines.at(-1)?.trim().slice(0, 200) || 'ssh failed without a message';
}
