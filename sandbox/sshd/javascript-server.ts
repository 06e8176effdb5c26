/** An SSH server made with the package ssh2: it accepts one key, and each command runs on the stand-in host. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import ssh2, { type Attempt, type Channel, type Connection, type PublicKey } from 'ssh2';
import {
  ADDRESS,
  ENTER_HOST,
  knownHostOf,
  makeKey,
  type ServerOptions,
  type SshServer,
} from './server.ts';

export async function startJavascriptServer({
  host,
  directory,
  clientKey,
}: ServerOptions): Promise<SshServer> {
  const hostKey = join(directory, 'host-key');
  await makeKey(hostKey);
  const allowed = ssh2.utils.parseKey(await readFile(clientKey));
  const connections = new Set<Connection>();
  const server = new ssh2.Server({ hostKeys: [await readFile(hostKey)] }, (connection) => {
    connections.add(connection);
    connection
      .on('close', () => connections.delete(connection))
      // A client that is killed resets its connection.
      .on('error', () => connections.delete(connection))
      .on('authentication', (attempt) => admit(attempt, allowed))
      .on('session', (accept) => {
        accept().on('exec', (acceptCommand, _reject, { command }) =>
          enter(host.root, command, acceptCommand()),
        );
      });
  });
  await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve));
  const { port } = server.address();
  return {
    port,
    knownHost: await knownHostOf(port, hostKey),
    async stop() {
      for (const connection of connections) connection.end();
      await new Promise<void>((resolve) => server.close(resolve));
    },
  };
}

function admit(attempt: Attempt, allowed: PublicKey): void {
  const { method, key, blob, signature, hashAlgo } = attempt;
  if (method !== 'publickey') return attempt.reject(['publickey']);
  if (!key.data.equals(allowed.getPublicSSH())) return attempt.reject();
  // Without a signature, the client only asks whether the server accepts the key.
  if (blob && signature && !allowed.verify(blob, signature, hashAlgo)) return attempt.reject();
  attempt.accept();
}

/**
 * Returns the environment of a login. It takes only PATH from the environment of this process, because the tools of a
 * machine may be in unusual directories.
 */
function loginEnvironment(home: string): NodeJS.ProcessEnv {
  const { username } = userInfo();
  return {
    PATH: process.env['PATH'],
    HOME: home,
    USER: username,
    LOGNAME: username,
    SHELL: '/bin/sh',
  };
}

/** As with a real server, a command continues after its connection has ended. */
function enter(root: string, command: string, channel: Channel): void {
  const child = spawn('/bin/sh', [ENTER_HOST, root, command], {
    stdio: 'pipe',
    env: loginEnvironment(root),
  });
  channel.pipe(child.stdin);
  child.stdout.pipe(channel, { end: false });
  child.stderr.pipe(channel.stderr, { end: false });
  for (const stream of [channel, child.stdin]) stream.on('error', () => undefined);
  child.once('close', (code) => {
    channel.exit(code ?? 1);
    channel.end();
  });
}
