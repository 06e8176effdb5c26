/**
 * Runs scripts on hosts with the ssh client of the system. Each host has one shared connection, and host keys are
 * always checked.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RefitError } from '../../../util/errors.ts';
import { BROKEN, runProgram } from '../../../util/run-program.ts';
import { semaphore } from '../../../util/waits.ts';
import { quoted } from '../host/filled-script.ts';
import type { Shells } from '../host/host.ts';
import type { Manifest, ManifestHost } from './manifest.ts';

/** Runs scripts over SSH. Disposing it closes the shared connections; running scripts continue on their hosts. */
export type SshShells = Shells & AsyncDisposable;

/** The most hosts on which scripts run at a time. Each connection takes processes on this machine. */
const AT_ONCE = 32;
/** The most hosts at a time if there is a bastion. By default, its sshd may refuse more than ten logins at once. */
const THROUGH_BASTION = 10;
/** Seconds that a shared connection stays open after its last script if this process is killed. */
const PERSIST = 15;

/** Marks the start of the output. The user's .bashrc may print a greeting before it. */
const BEGINS = 'refit begins';

/**
 * Opens shells on the hosts. The sockets are in a private directory, because anybody who can use a socket has root
 * access to its host.
 */
export async function openShells(ssh: Manifest['ssh']): Promise<SshShells> {
  // Guard ssh-folder. Anybody who can use a socket there has root access to its host.
  const directory = await mkdtemp(join(tmpdir(), 'refit-ssh-'));
  /**
   * The path of the socket for each host name. The path contains a number instead of the name, because a path may have
   * only about 100 bytes.
   */
  const used = new Map<string, string>();
  return {
    async run(host: ManifestHost, script, patienceMs) {
      const user = host.user ?? ssh.user ?? 'root';
      const command = user === 'root' ? 'sh -s' : 'sudo -n sh -s';
      const path = host.path ?? ssh.path;
      const exported = path === undefined ? '' : `PATH=${quoted(path)}\nexport PATH\n`;
      const input = `echo ${quoted(BEGINS)}\n${exported}${script}`;
      const socket = used.getOrInsert(host.name, join(directory, String(used.size)));
      const result = await runProgram('ssh', [...argumentsOf(host, ssh, socket), command], {
        input,
        patienceMs,
      });
      if (result.code !== BROKEN)
        return { ...result, stdout: result.stdout.split(`${BEGINS}\n`).at(-1) ?? '' };
      const through = host.bastion ? ` through ${host.bastion.address}` : '';
      const where = `${host.name} (${host.address ?? host.name}${through})`;
      throw new RefitError(
        'REFIT_SSH',
        `${where}: ${missingKeys(host, ssh)}${reasonOf(result.stderr, user)}`,
      );
    },
    async [Symbol.asyncDispose]() {
      const end = async (socket: string): Promise<unknown> =>
        await runProgram('ssh', ['-o', `ControlPath=${socket}`, '-O', 'exit', 'host'], {}).catch(
          () => undefined,
        );
      await Promise.all([...used.values()].map(end));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Returns a function that runs work on hosts, and that limits the number of hosts on which work runs at the same time.
 */
export function limitFor(hosts: readonly ManifestHost[]) {
  return semaphore(hosts.some(({ bastion }) => bastion) ? THROUGH_BASTION : AT_ONCE);
}

/** Returns the arguments of ssh for a host. A connection to a bastion is not shared, so it has no socket. */
function argumentsOf(
  { bastion, ...host }: ManifestHost,
  ssh: Manifest['ssh'],
  socket?: string,
): string[] {
  const port = host.port ?? ssh.port;
  const identity = host.identityFile ?? ssh.identityFile;
  // ssh's own ProxyJump is not used, because it would use neither these options nor the key for the bastion.
  const toBastion =
    bastion && argumentsOf({ ...host, ...bastion }, ssh).map((each) => each.replaceAll('%', '%%'));
  const way = toBastion && ['ssh', '-W', '[%h]:%p', ...toBastion].map(quoted).join(' ');
  const options: Record<string, string | number> = {
    // Guard ssh-questions. Nobody is asked to accept a host key or to type a password.
    BatchMode: 'yes',
    // Guard ssh-host-key. Only a host with a known key gets commands.
    StrictHostKeyChecking: 'yes',
    // Guard ssh-localhost. A forwarded port of this machine is another host.
    NoHostAuthenticationForLocalhost: 'no',
    // Guard ssh-new-keys. A host adds no keys to the known hosts.
    UpdateHostKeys: 'no',
    // Guard ssh-agent. Root on a host cannot use the keys of the operator.
    ForwardAgent: 'no',
    // Guard ssh-tickets. Root on a host cannot use the Kerberos tickets of the operator.
    GSSAPIDelegateCredentials: 'no',
    // Guard ssh-screen. A host cannot read the keyboard of the operator.
    ForwardX11: 'no',
    // Guard ssh-ports. A host gets no port that leads into the network of the operator.
    ClearAllForwardings: 'yes',
    // Guard ssh-known-hosts. Only the known hosts of the manifest count.
    ...(ssh.knownHostsFile
      ? {
          UserKnownHostsFile: ssh.knownHostsFile,
          // Guard ssh-shared-hosts. The known hosts of this machine do not count.
          GlobalKnownHostsFile: 'none',
          // Guard ssh-hosts-command. No command adds host keys.
          KnownHostsCommand: 'none',
          // Guard ssh-name-server. No name server adds host keys.
          VerifyHostKeyDNS: 'no',
        }
      : {}),
    ...(socket
      ? // Guard ssh-socket. Only Refit can use the shared connection.
        { ControlMaster: 'auto', ControlPath: socket, ControlPersist: PERSIST }
      : { ControlPath: 'none' }),
    ConnectTimeout: 10,
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

/**
 * Returns a clause that names the keys of the host and its bastion that do not exist on this machine; an empty text if
 * all exist. Ssh goes on without such a key and does not name it. Paths that ssh itself expands are not checked.
 */
function missingKeys(host: ManifestHost, ssh: Manifest['ssh']): string {
  const keys = [host.identityFile ?? ssh.identityFile, host.bastion?.identityFile];
  const found = new Set(keys.filter((key) => key !== undefined && /^[^~%]*$/.test(key)));
  const missing: string[] = [];
  for (const key of found) if (key !== undefined && !existsSync(key)) missing.push(key);
  return missing.length === 0
    ? ''
    : `its key ${missing.join(' and ')} does not exist on this machine; correct identityFile. ssh says: `;
}

function reasonOf(stderr: string, user: string): string {
  if (stderr.includes('HOST IDENTIFICATION HAS CHANGED'))
    return 'its host key has changed: check the host, then update the known hosts';
  if (/host key is known/.test(stderr))
    return 'its host key is unknown: check it, then add it to the known hosts';
  if (stderr.includes('Permission denied'))
    return `login as ${user} is denied; check user and identityFile`;
  // For a failed connection to the bastion, ssh prints only this text and not the error.
  if (stderr.includes('UNKNOWN port 65535'))
    return 'no connection through its bastion: check that host and bastion are up, and check the host key, user and key of the bastion';
  return stderr.trim().split('\n').at(-1)?.trim().slice(0, 200) || 'ssh failed without a message';
}
