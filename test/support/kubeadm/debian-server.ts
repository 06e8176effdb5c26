/** Runs the system's own sshd for one stand-in host, with its own keys, its own port, and one forced command. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import {
  ADDRESS,
  ENTER_HOST,
  knownHostOf,
  makeKey,
  type ServerOptions,
  type SshServer,
} from '../../../sandbox/sshd/server.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { startProcess } from '../../../tools/controlplane/process.ts';

export const SSHD = '/usr/sbin/sshd';

/** Returns the reason why there is no sshd; undefined if there is one. */
export function whyNoSshd(): string | undefined {
  return existsSync(SSHD)
    ? undefined
    : `${SSHD} is not installed: Debian's package openssh-server has it`;
}

export async function startDebianServer({
  host,
  directory,
  clientKey,
}: ServerOptions): Promise<SshServer> {
  for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder), { recursive: true });
  const hostKey = join(directory, 'host-key');
  await makeKey(hostKey);
  await copyFile(clientKey, join(directory, 'authorized_keys'));
  const port = await freePort();
  const config = join(directory, 'sshd_config');
  // HOME is set because a shell that sshd starts reads files in it, and the usual HOME belongs to the person who runs
  // the tests. A privileged sshd needs its directory /run/sshd. StrictModes is off because the umask of the caller
  // determines the modes of the test's files.
  if (process.getuid?.() === 0) await mkdir('/run/sshd', { recursive: true });
  await writeFile(
    config,
    `ListenAddress ${ADDRESS}:${port}
HostKey ${hostKey}
AuthorizedKeysFile ${join(directory, 'authorized_keys')}
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxSessions 50
SetEnv HOME=${directory}
ForceCommand /bin/sh ${ENTER_HOST} ${host.root} "$SSH_ORIGINAL_COMMAND"
`,
  );
  const sshd = await startProcess({
    name: 'sshd',
    command: SSHD,
    args: ['-D', '-e', '-f', config],
    directory,
    ready: async () => await listens(port),
    clock: systemClock,
  });
  return { port, knownHost: await knownHostOf(port, hostKey), stop: async () => await sshd.stop() };
}

async function listens(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, ADDRESS, () => resolve(true));
    socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
  });
}
