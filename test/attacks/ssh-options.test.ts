/**
 * Tests which options of ssh count when Refit connects to a host. An attacker has changed the configuration of ssh, or
 * answers in place of the host. ssh itself prints the options that count.
 */
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ManifestHost } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { openShells } from '../../src/dialects/kubeadm/plan/ssh.ts';
import { testUnless, whyNoProgram } from '../support/left-out.ts';

const HOST: ManifestHost = { name: 'w1', address: '127.0.0.1', role: 'worker' };
/** Each option that Refit sets, as ssh prints it, and the opposite in the configuration of the attacker. */
const OPTIONS = [
  ['StrictHostKeyChecking', 'no', 'stricthostkeychecking true'],
  ['UpdateHostKeys', 'yes', 'updatehostkeys false'],
  ['ForwardAgent', 'yes', 'forwardagent no'],
  ['ForwardX11', 'yes', 'forwardx11 no'],
  ['BatchMode', 'no', 'batchmode yes'],
  ['GlobalKnownHostsFile', '/srv/evil-hosts', 'globalknownhostsfile none'],
  ['UserKnownHostsFile', '/srv/evil-hosts', 'userknownhostsfile /srv/known'],
  ['IdentitiesOnly', 'no', 'identitiesonly yes'],
  ['NoHostAuthenticationForLocalhost', 'yes', 'nohostauthenticationforlocalhost no'],
  ['GSSAPIDelegateCredentials', 'yes', 'gssapidelegatecredentials no'],
  ['ClearAllForwardings', 'no', 'clearallforwardings yes'],
  ['VerifyHostKeyDNS', 'yes', 'verifyhostkeydns false'],
] as const;

let directory = '';
let before: string | undefined;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-ssh-options-'));
  const config = OPTIONS.map(([name, value]) => `${name} ${value}\n`);
  await writeFile(join(directory, 'config'), [...config, 'ControlPath /srv/evil\n'].join(''));
  before = process.env['PATH'];
});
afterAll(async () => {
  process.env['PATH'] = before;
  await rm(directory, { recursive: true });
});

const withSsh = testUnless(whyNoProgram('ssh', 'openssh-client'));
const settings = () => ({
  knownHostsFile: '/srv/known',
  identityFile: '/srv/key',
  configFile: join(directory, 'config'),
});

/** Resolves with the options of the connection to the host, as ssh prints them. */
async function effective(host: ManifestHost): Promise<string[]> {
  const real = execFileSync('sh', ['-c', 'command -v ssh'], {
    encoding: 'utf8',
    env: { PATH: before },
  }).trim();
  await writeFile(join(directory, 'ssh'), `#!/bin/sh\nexec ${real} -G "$@" </dev/null\n`);
  await chmod(join(directory, 'ssh'), 0o755);
  process.env['PATH'] = `${directory}:${before}`;
  try {
    await using shells = await openShells(settings());
    return (await shells.run(host, 'true')).stdout.split('\n');
  } finally {
    process.env['PATH'] = before;
  }
}

withSsh('no option of the configuration of ssh replaces an option of Refit', async () => {
  const found = await effective(HOST);
  expect(found).toEqual(expect.arrayContaining(OPTIONS.map(([, , line]) => line)));
  // The shared connection has a socket in a folder of Refit.
  expect(found.find((line) => line.startsWith('controlpath '))).toMatch(/\/refit-ssh-\w+\/\d+$/);
});

withSsh('the connection to a bastion has the same options', async () => {
  const found = await effective({ ...HOST, bastion: { address: '127.0.0.2', port: 22 } });
  const [command = ''] = found.filter((line) => line.startsWith('proxycommand '));
  const words = command.replaceAll("'", '').replaceAll('%%', '%').split(' ');
  expect(words).toEqual(
    expect.arrayContaining([
      'BatchMode=yes',
      'StrictHostKeyChecking=yes',
      'UpdateHostKeys=no',
      'ForwardAgent=no',
      'ForwardX11=no',
      'UserKnownHostsFile=/srv/known',
      'GlobalKnownHostsFile=none',
      'IdentitiesOnly=yes',
      'NoHostAuthenticationForLocalhost=no',
      'GSSAPIDelegateCredentials=no',
      'ClearAllForwardings=yes',
      'VerifyHostKeyDNS=no',
      'KnownHostsCommand=none',
      'ControlPath=none',
    ]),
  );
});

withSsh(
  'a key that does not exist is named beside the words of ssh, which do not name it',
  async () => {
    const identityFile = join(directory, 'no-such-key');
    await using shells = await openShells({ ...settings(), identityFile });
    const closed = { ...HOST, port: 1 };
    await expect(shells.run(closed, 'true')).rejects.toThrow(
      `its key ${identityFile} does not exist on this machine; correct identityFile. ssh says: ssh: connect to host`,
    );
  },
);
