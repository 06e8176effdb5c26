/** The attacks on the guards of the kubeadm dialect: of its connections to hosts, and of the binaries for a host. */
import * as files from 'node:fs/promises';
import { fetchBinaries, hashesIn } from '../../src/dialects/kubeadm/agent/fetch-binaries.ts';
import { findKubeadm } from '../../src/dialects/kubeadm/agent/perform-on-kubeadm.ts';
import { commonHash } from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import type { Shells } from '../../src/dialects/kubeadm/host/host.ts';
import { type ManifestHost, parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { openShells } from '../../src/dialects/kubeadm/plan/ssh.ts';
import { DEFAULT_TOOLS } from '../../src/util/tools.ts';
import { writeYaml } from '../../src/util/yaml.ts';
import { key } from '../support/builders/agent-situations.ts';
import { type Attack, hashOf, LIMITS, type Scene, TOOLS, works } from './agent-guard-scenes.ts';

const HOST: ManifestHost = { name: 'w1', address: '127.0.0.1', role: 'worker' };
const BASTION: ManifestHost = { ...HOST, bastion: { address: '127.0.0.2', port: 22 } };

/** Resolves with the arguments that ssh gets, and with the mode of the folder of the shared connection. */
async function sshOf(scene: Scene, host: ManifestHost) {
  const folder = '$(dirname "$(printf "%s\\n" "$@" | sed -n s/^ControlPath=//p)")';
  await scene.put(
    'bin/ssh',
    `#!/bin/sh\nprintf '%s\\n' "$@"\nstat -c mode=%a "${folder}"\n`,
    0o755,
  );
  const before = process.env['PATH'];
  process.env['PATH'] = `${scene.at('bin')}:${before}`;
  try {
    await using shells = await openShells({ knownHostsFile: '/srv/known' });
    return (await shells.run(host, 'true')).stdout.split('\n');
  } finally {
    process.env['PATH'] = before;
  }
}

/** An attack that succeeds if ssh does not get this option, for the host and for its bastion. */
const without =
  (option: string): Attack =>
  async (scene) => {
    const found = await sshOf(scene, BASTION);
    const [way = ''] = found.filter((each) => each.startsWith('ProxyCommand='));
    return !found.includes(option) || !way.includes(option);
  };

const OPTIONS: Readonly<Record<string, Attack>> = {
  'ssh-questions': without('BatchMode=yes'),
  'ssh-host-key': without('StrictHostKeyChecking=yes'),
  'ssh-localhost': without('NoHostAuthenticationForLocalhost=no'),
  'ssh-new-keys': without('UpdateHostKeys=no'),
  'ssh-agent': without('ForwardAgent=no'),
  'ssh-tickets': without('GSSAPIDelegateCredentials=no'),
  'ssh-screen': without('ForwardX11=no'),
  'ssh-ports': without('ClearAllForwardings=yes'),
  'ssh-known-hosts': without('UserKnownHostsFile=/srv/known'),
  'ssh-shared-hosts': without('GlobalKnownHostsFile=none'),
  'ssh-hosts-command': without('KnownHostsCommand=none'),
  'ssh-name-server': without('VerifyHostKeyDNS=no'),
  'ssh-socket': async (scene) => {
    const found = await sshOf(scene, BASTION);
    const [way = ''] = found.filter((each) => each.startsWith('ProxyCommand='));
    return !way.includes('ControlPath=none');
  },
  'ssh-folder': async (scene) => !(await sshOf(scene, HOST)).includes('mode=700'),
};

/** Resolves with true if a manifest with this option of ssh is accepted. */
async function isAccepted(options: Readonly<Record<string, string>>): Promise<boolean> {
  const binaries = { kubeadm: { path: '/opt/kubeadm' }, kubelet: { path: '/opt/kubelet' } };
  const hosts = [{ name: 'cp1', role: 'controlPlane' }];
  const text = writeYaml({ version: '1.36.3', hosts, binaries, ssh: { options } });
  return await works(Promise.try(() => parseManifest(text, 'cluster.yaml')));
}

/** Shells of a host that has kubeadm, and on which the check of its options ends like this. */
function shellsThatSay(code: number, stdout: string): Shells {
  let calls = 0;
  const fine = { code: 0, stdout: '', stderr: '' };
  return {
    run: async () => await Promise.resolve(calls++ === 0 ? fine : { code, stdout, stderr: '' }),
  };
}

const finds = async (shells: Shells): Promise<boolean> =>
  await works(findKubeadm('w1', '', shells, { config: '/etc/upgrade.yaml' }));

/** Downloads the binaries of a list. The server sends what the list says, except for a file with other bytes. */
async function fetches(scene: Scene, { list = '', evil = '', hasHash = true }): Promise<boolean> {
  const names = ['kubeadm', 'kubelet'];
  const text = list || names.map((name) => `${hashOf(name)}  ${name}\n`).join('');
  const url = await scene.serve(({ url: path = '' }, response) => {
    const name = path.slice(1);
    const bytes = name === evil ? 'evil' : name;
    response.end(name === 'list' ? text : bytes);
  });
  const { sha256: _sha256, ...command } = { ...key.command, url: `${url}/list` };
  const parts = { userAgent: 'a', limits: LIMITS, directory: scene.at('binaries'), root: '' };
  const signal = hasHash ? { ...command, sha256: hashOf(text) } : command;
  return await works(fetchBinaries(signal, { ...DEFAULT_TOOLS, ...parts, abort: TOOLS.abort }));
}

const HOSTS: Readonly<Record<string, Attack>> = {
  'ssh-reserved': async () => await isAccepted({ StrictHostKeyChecking: 'no' }),
  'ssh-option-name': async () => await isAccepted({ 'StrictHostKeyChecking ': 'no' }),
  'checked-options': async () => await finds(shellsThatSay(0, 'others may write to it')),
  'unchecked-options': async () => await finds(shellsThatSay(1, '')),
  'list-hash': async (scene) => await fetches(scene, { hasHash: false }),
  'listed-binary': async (scene) => await fetches(scene, { evil: 'kubelet' }),
  'binaries-folder': async (scene) => {
    await scene.folder('binaries', 0o755);
    await fetches(scene, {});
    return ((await files.stat(scene.at('binaries'))).mode & 0o777) !== 0o700;
  },
  'list-twice': async () => {
    const lines = ['good', 'evil'].map((text) => `${hashOf(text)}  kubelet\n`).join('');
    return await works(Promise.try(() => hashesIn(lines)));
  },
  'same-snapshot': async () =>
    await works(Promise.try(() => commonHash('/s', [hashOf('one'), hashOf('other')]))),
};

export const SSH_ATTACKS: Readonly<Record<string, Attack>> = { ...OPTIONS, ...HOSTS };
