/**
 * Runs Debian's Exim. It accepts mail over TLS only from a user with the right password, and keeps the mail in its
 * spool.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/util/clock.ts';
import { cacheDirectory } from '../../tools/controlplane/build.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startProcess } from '../../tools/controlplane/process.ts';

const UNPACKED = join(cacheDirectory(process.env), '..', 'exim', 'usr');
const EXIM = join(UNPACKED, 'sbin', 'exim4');
const LIBRARIES = join(UNPACKED, 'lib', 'x86_64-linux-gnu');
/** A user that exists on no machine. Debian's Exim looks up its user by name, and runs only if this user is not root. */
const UID = 64_999;
const USER = 'Debian-exim';

/** Replaces /etc/passwd and /etc/group inside a separate mount namespace, so that Exim finds its user in them. */
const IN_NAMESPACE = [
  '--mount',
  'sh',
  '-c',
  'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && exec "$@"',
];

/** Why Exim cannot run here; undefined if it can. */
export const MISSING = missing();

function missing(): string | undefined {
  if (!existsSync(EXIM)) return `no ${EXIM}: .ci/run unpacks a package of Debian there`;
  if (process.getuid?.() !== 0) return 'only root can give Exim its user';
  return spawnSync('unshare', ['--mount', 'true']).status === 0
    ? undefined
    : 'no mount namespace can be made, in which Exim finds its user';
}

export interface Exim extends AsyncDisposable {
  readonly port: number;
  /** The certificate of the CA that signed its certificate, in PEM. */
  readonly authority: string;
  /** Headers and body of each message that it has accepted. */
  accepted(): Promise<readonly string[]>;
}

/** Starts it on loopback. Only this user with this password may send. */
export async function startExim(user: string, password: string): Promise<Exim> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-exim-'));
  const file = (name: string): string => join(directory, name);
  for (const name of ['logs', 'pids', 'data', 'spool', 'log']) await mkdir(file(name));
  await writeFile(
    file('passwd'),
    `${await readFile('/etc/passwd', 'utf8')}${USER}:x:${UID}:${UID}::/:/bin/false\n`,
  );
  await writeFile(file('group'), `${await readFile('/etc/group', 'utf8')}${USER}:x:${UID}:\n`);
  const validity = validFrom(systemClock.now());
  const subject = { commonName: 'mail of the tests' };
  const authority = createAuthority(subject, validity);
  const { certificate, key } = issueServer(
    { subject, key: authority.key },
    { dns: [], addresses: ['127.0.0.1'] },
    validity,
  );
  await writeFile(file('tls.crt'), certificate);
  await writeFile(file('tls.key'), key);
  const port = await freePort();
  const lines = [
    `exim_path = ${EXIM}`,
    'keep_environment = LD_LIBRARY_PATH',
    'primary_hostname = mail.test',
    `log_file_path = ${file('log/%slog')}`,
    `spool_directory = ${file('spool')}`,
    `pid_file_path = ${file('exim.pid')}`,
    `exim_user = ${USER}`,
    `exim_group = ${USER}`,
    'local_interfaces = 127.0.0.1',
    `daemon_smtp_ports = ${port}`,
    // Accepted messages stay in the spool.
    'queue_only = true',
    'tls_advertise_hosts = *',
    `tls_certificate = ${file('tls.crt')}`,
    `tls_privatekey = ${file('tls.key')}`,
    'auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}',
    'acl_smtp_rcpt = check',
    'begin acl',
    'check:',
    '  require authenticated = *',
    '  accept',
    'begin authenticators',
    'plain:',
    '  driver = plaintext',
    '  public_name = PLAIN',
    `  server_condition = \${if and{{eq{$auth2}{${user}}}{eq{$auth3}{${password}}}}}`,
    '  server_set_id = $auth2',
  ];
  await writeFile(file('exim.conf'), `${lines.join('\n')}\n`);
  for (const name of ['.', 'spool', 'log', 'tls.crt', 'tls.key']) await chown(file(name), UID, UID);
  const daemon = await startProcess({
    name: 'exim',
    command: 'unshare',
    args: [
      ...IN_NAMESPACE,
      directory,
      'env',
      `LD_LIBRARY_PATH=${LIBRARIES}`,
      EXIM,
      '-C',
      file('exim.conf'),
      '-bdf',
    ],
    directory,
    ready: async () => await listens(port),
    clock: systemClock,
  });
  return {
    port,
    authority: authority.certificate,
    accepted: async () => await spooled(file('spool/input')),
    async [Symbol.asyncDispose]() {
      await daemon.stop();
      await rm(directory, { recursive: true });
    },
  };
}

async function listens(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

/**
 * Exim writes the envelope and the headers of a message into one file, and the body into another file. The file with
 * the headers is written last.
 */
async function spooled(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  const ids = names.filter((name) => name.endsWith('-H')).toSorted();
  return await Promise.all(
    ids.map(async (name) => {
      const head = await readFile(join(folder, name), 'utf8');
      const body = await readFile(join(folder, name.replace(/H$/, 'D')), 'utf8');
      return `${head}\n${body}`;
    }),
  );
}
