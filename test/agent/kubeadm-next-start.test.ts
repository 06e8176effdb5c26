/**
 * Tests what `plan` says about the credentials with which the kubelet of a host would start the next time. The kubelet
 * that runs has read other files, and works.
 */
import { symlink } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Host } from '../../src/dialects/kubeadm/host/host.ts';
import { parseFacts, probeHost } from '../../src/dialects/kubeadm/host/probe.ts';
import { probeScript } from '../../src/dialects/kubeadm/host/scripts.ts';
import { createAuthority, issueClient } from '../../tools/controlplane/certs.ts';
import { attackedManifest, KubeadmRig } from '../attacks/kubeadm-rig.ts';

const DAY = 86_400_000;
const NOW = Date.now();
const subject = { commonName: 'kubernetes' };
const AUTHORITY = {
  subject,
  ...createAuthority(subject, { notBefore: NOW - 300 * DAY, notAfter: NOW + 3000 * DAY }),
};
const issue = (left: number) =>
  issueClient(
    AUTHORITY,
    { commonName: 'system:node:cp1', organization: 'system:nodes' },
    { notBefore: NOW - 200 * DAY, notAfter: NOW + left * DAY },
  );
const VALID = issue(300);
const ENDED = issue(-1);
const inBase64 = (text: string): string => Buffer.from(text).toString('base64');

const CURRENT = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const embedded = ({ certificate, key }: typeof VALID): string =>
  `client-certificate-data: ${inBase64(certificate)}\n    client-key-data: ${inBase64(key)}`;
const FILES = `client-certificate: ${CURRENT}\n    client-key: ${CURRENT}`;
const kubeconfig = (user: string, server = '', ca = ''): string => `apiVersion: v1
clusters:
- cluster:
    ${ca || `certificate-authority-data: ${inBase64(AUTHORITY.certificate)}`}
    server: ${server || 'https://10.0.0.9:6443'}
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: default-auth
  name: default-auth@kubernetes
current-context: default-auth@kubernetes
kind: Config
users:
- name: default-auth
  user:
    ${user}
`;
const BOOTSTRAP = '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf';
const DROP_IN = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=${BOOTSTRAP} --kubeconfig=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_EXTRA_ARGS
`;

/** Returns a host on which a kubelet runs. Its next start reads `files`; an empty text leaves a file out. */
async function hostWith(files: Readonly<Record<string, string>>): Promise<KubeadmRig> {
  const rig = await KubeadmRig.create();
  await rig.program(
    'systemctl',
    'case $* in *MainPID*) echo 1234 ;; is-active*) echo active ;; esac',
  );
  await rig.program('curl', 'exit 0');
  await rig.put('proc/1234/cmdline', '/usr/bin/kubelet\0');
  const all = {
    'usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\n',
    'usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf': DROP_IN,
    'var/lib/kubelet/config.yaml': 'rotateCertificates: true\n',
    'var/lib/kubelet/pki/kubelet-client-current.pem': `${VALID.certificate}${VALID.key}`,
    'etc/kubernetes/kubelet.conf': kubeconfig(FILES),
    ...files,
  };
  for (const [path, text] of Object.entries(all)) if (text !== '') await rig.put(path, text);
  return rig;
}

async function problemsOf(rig: KubeadmRig): Promise<string[]> {
  const path = { path: '/none' };
  const { manifest } = attackedManifest({ kubeadm: path, kubelet: path });
  const host: Host = { name: 'cp1', role: 'worker' };
  const shells = {
    run: async (_host: Host, script: string) => ({
      code: 0,
      stdout: await rig.onHost(script),
      stderr: '',
    }),
  };
  const { problems } = await probeHost(shells, manifest, host, NOW);
  return problems
    .map(({ severity, message }) => `${severity} ${message}`)
    .filter((line) => /kubelet\.conf|own\.conf|\.pem|pki/.test(line));
}

const again = /^hard .*, so the kubelet would not start again, and the upgrade restarts it/;

test.each<[string, Record<string, string>, RegExp | undefined]>([
  ['that kubeadm wrote', {}, undefined],
  [
    'with a valid certificate of its own',
    { 'etc/kubernetes/kubelet.conf': kubeconfig(embedded(VALID)) },
    undefined,
  ],
  [
    'with an ended certificate of its own, although the kubelet rotated its certificate',
    { 'etc/kubernetes/kubelet.conf': kubeconfig(embedded(ENDED)) },
    again,
  ],
  [
    'with an ended certificate of its own and no first kubeconfig, so the kubelet starts with the rotated one',
    {
      'etc/kubernetes/kubelet.conf': kubeconfig(embedded(ENDED)),
      'usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf': DROP_IN.replace(BOOTSTRAP, ''),
    },
    undefined,
  ],
  [
    'with an ended certificate, and a kubeconfig to ask for a new one',
    {
      'etc/kubernetes/kubelet.conf': kubeconfig(embedded(ENDED)),
      'etc/kubernetes/bootstrap-kubelet.conf': kubeconfig('token: abc'),
    },
    /^warn \/etc\/kubernetes\/kubelet\.conf ended on/,
  ],
  [
    'that names a file with an ended certificate',
    { 'var/lib/kubelet/pki/kubelet-client-current.pem': `${ENDED.certificate}${ENDED.key}` },
    again,
  ],
  ['that names a missing file', { 'var/lib/kubelet/pki/kubelet-client-current.pem': '' }, again],
  [
    'that names a file without a key',
    { 'var/lib/kubelet/pki/kubelet-client-current.pem': VALID.certificate },
    /^hard .*kubelet-client-current\.pem, which has no private key, so the kubelet would not start/,
  ],
  [
    'with a certificate but no key',
    {
      'etc/kubernetes/kubelet.conf': kubeconfig(
        embedded(VALID).replace(/\n.*client-key-data.*/, ''),
      ),
    },
    /^hard .* has a client certificate without a key/,
  ],
  ['that is missing', { 'etc/kubernetes/kubelet.conf': '' }, again],
  [
    'without credentials',
    { 'etc/kubernetes/kubelet.conf': kubeconfig('other: x') },
    /^hard .* has no credentials/,
  ],
  ['with a token', { 'etc/kubernetes/kubelet.conf': kubeconfig('token: abc') }, undefined],
  [
    'that names a missing authority',
    { 'etc/kubernetes/kubelet.conf': kubeconfig(FILES, '', 'certificate-authority: pki/lost.crt') },
    /^hard .* names the authority \/etc\/kubernetes\/pki\/lost\.crt, which is missing or empty/,
  ],
  [
    'that another drop-in names for the next start',
    {
      'etc/systemd/system/kubelet.service.d/20-own.conf':
        '[Service]\nEnvironment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/srv/own.conf"\n',
      'srv/own.conf': kubeconfig(embedded(ENDED)),
    },
    /^hard \/srv\/own\.conf ended on/,
  ],
])('a kubeconfig of the kubelet %s', async (_name, files, refusal) => {
  await using rig = await hostWith(files);
  const found = await problemsOf(rig);
  expect(found).toEqual(refusal === undefined ? [] : [expect.stringMatching(refusal)]);
});

test('a rotated certificate whose link leads nowhere refuses the host', async () => {
  await using rig = await hostWith({ 'var/lib/kubelet/pki/kubelet-client-current.pem': '' });
  await rig.put('var/lib/kubelet/pki/other', 'x');
  await symlink('kubelet-client-2026.pem', rig.at(CURRENT.slice(1)));
  expect(await problemsOf(rig)).toEqual([expect.stringMatching(again)]);
});

test.each([
  [7, true],
  [28, true],
  // A server has answered, but not as curl expects.
  [22, false],
])(
  'a server in the kubeconfig for which curl ends with code %i is refused: %s',
  async (code, isRefused) => {
    await using rig = await hostWith({});
    await rig.program('curl', `echo "curl: ($code)"; exit ${code}`);
    const line = expect.stringMatching(
      /^hard \/etc\/kubernetes\/kubelet\.conf names the server https:\/\/10\.0\.0\.9:6443, which does not answer on this host/,
    ) as string;
    expect(await problemsOf(rig)).toEqual(isRefused ? [line] : []);
  },
);

test('a host without a kubelet that runs gets no second refusal', async () => {
  await using rig = await hostWith({ 'etc/kubernetes/kubelet.conf': '' });
  await rig.program(
    'systemctl',
    'case $* in *MainPID*) echo 0 ;; is-active*) echo inactive ;; esac',
  );
  expect(await problemsOf(rig)).toEqual([]);
});

test('the flags of the next start are read from each file that the unit names, without their values', async () => {
  await using rig = await hostWith({
    'etc/default/kubelet':
      "# --old=1\nKUBELET_EXTRA_ARGS='--pod-infra-container-image=registry.local/pause:3.10 --feature-gates A=true,B=false'\n",
    'etc/sysconfig/kubelet': 'KUBELET_EXTRA_ARGS=--not-read\n',
    'var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\n',
    'etc/systemd/system/kubelet.service.d/20-own.conf':
      '[Service]\nEnvironment="OWN=--v=4" "MORE=--feature-gates=C=true"\n',
  });
  const path = { path: '/none' };
  const { manifest, host } = attackedManifest({ kubeadm: path, kubelet: path });
  const { kubeletFlags = [] } = parseFacts(await rig.onHost(probeScript(manifest, host, NOW)));
  expect(kubeletFlags.map(({ name, file, value }) => `${file} ${name} ${value}`)).toEqual([
    '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf bootstrap-kubeconfig ',
    '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf kubeconfig ',
    '/etc/systemd/system/kubelet.service.d/20-own.conf v ',
    '/etc/systemd/system/kubelet.service.d/20-own.conf feature-gates C=true',
    '/var/lib/kubelet/kubeadm-flags.env node-ip ',
    '/etc/default/kubelet pod-infra-container-image ',
    '/etc/default/kubelet feature-gates A=true,B=false',
  ]);
});
