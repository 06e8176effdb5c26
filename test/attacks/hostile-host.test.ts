/**
 * Tests `refit kubeadm` against a host that an attacker controls as root. The host tries to delay the command, to end
 * it, or to control the terminal of the operator.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { makeKey, type SshServer } from '../../sandbox/sshd/server.ts';
import { openShells } from '../../src/dialects/kubeadm/plan/ssh.ts';
import { startDebianServer, whyNoSshd } from '../support/kubeadm/debian-server.ts';
import { testUnless, whyNoProgram } from '../support/left-out.ts';
import { kubeconfigOf } from './rig.ts';

const host = { name: 'w1', address: '127.0.0.1', role: 'controlPlane' } as const;
const isReal = whyNoSshd() === undefined;
if (!isReal) process.stdout.write(`a server in JavaScript takes its place: ${whyNoSshd()}\n`);

let directory = '';
let server: SshServer;
const at = (name: string): string => join(directory, name);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-host-'));
  await mkdir(at('host/usr/bin'), { recursive: true });
  await mkdir(at('server'));
  await makeKey(at('key'));
  const start = isReal ? startDebianServer : startJavascriptServer;
  server = await start({
    host: { name: 'w1', role: 'controlPlane', root: at('host') },
    directory: at('server'),
    clientKey: at('key.pub'),
  });
  await writeFile(at('known'), server.knownHost);
});
afterAll(async () => {
  await server.stop();
  await rm(directory, { recursive: true });
});

/** Replaces the shell of the host. The shell then always runs this script. */
async function answerBy(script: string): Promise<void> {
  await writeFile(at('host/usr/bin/sh'), `#!/bin/sh\n${script}\n`);
  await chmod(at('host/usr/bin/sh'), 0o755);
}

const ssh = () => ({ port: server.port, identityFile: at('key'), knownHostsFile: at('known') });

/** Returns the arguments of a run against this host. There is no API server. */
async function refit(verb: 'plan' | 'apply'): Promise<string[]> {
  const sha256 = '0'.repeat(64);
  const path = '/none';
  const binaries = { kubeadm: { path, sha256 }, kubelet: { path, sha256 } };
  await writeFile(
    at('manifest.json'),
    JSON.stringify({ version: 'v1.36.3', hosts: [host], binaries, ssh: ssh() }),
  );
  const kubeconfig = await kubeconfigOf(directory, 'http://127.0.0.1:1');
  return [REFIT, 'kubeadm', verb, '--manifest', at('manifest.json'), '--kubeconfig', kubeconfig];
}

test('an answer without an end: the run ends with the name of the host', async () => {
  await answerBy('exec yes kubeadm=v1.36.3');
  const child = spawn(process.execPath, await refit('plan'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  expect(await once(child, 'exit')).toEqual([3, null]);
  expect(stderr).toMatch(
    /^REFIT_SSH.*w1 \(127\.0\.0\.1\): the script printed more than 1 MiB.*\n$/,
  );
});

testUnless(whyNoProgram('script', 'bsdutils'))(
  'terminal escapes: a question shows them as text',
  async () => {
    await answerBy(String.raw`printf 'missing=kube-scheduler hand /x\033]0;owned\007\n'`);
    const words = [process.execPath, ...(await refit('apply'))]
      .map((word) => `'${word}'`)
      .join(' ');
    const child = spawn('script', ['-qec', words, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
      if (text.includes('Type yes')) child.stdin.end('no\n');
    });
    await once(child, 'exit');
    expect(shown).toContain('Restore kube-scheduler.yaml from /x');
    expect(shown).not.toContain('\u001b]0;');
  },
);

test('a greeting before the script is no part of its answer', async () => {
  await answerBy('echo "Welcome to w1"\nexec /bin/sh -s');
  await using shells = await openShells(ssh());
  expect(await shells.run(host, 'echo 200')).toMatchObject({ code: 0, stdout: '200\n' });
});

test('no answer: the script is given up', async () => {
  await answerBy('exec sleep 600');
  await using shells = await openShells(ssh());
  await expect(shells.run(host, 'true', 300)).rejects.toThrow(
    'w1 (127.0.0.1): the script did not end within 300 ms',
  );
});

test("the caller's keys: no agent is forwarded, whatever the caller's configuration says", async () => {
  await answerBy('echo "<$SSH_AUTH_SOCK>"');
  await writeFile(at('config'), 'ForwardAgent yes\n');
  const agent = spawn('ssh-agent', ['-D', '-a', at('agent')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(agent.stdout, 'data');
  process.env['SSH_AUTH_SOCK'] = at('agent');
  try {
    await using shells = await openShells({ ...ssh(), configFile: at('config') });
    const { stdout } = await shells.run(host, 'true');
    expect(stdout).toBe('<>\n');
  } finally {
    delete process.env['SSH_AUTH_SOCK'];
    agent.kill();
  }
});
