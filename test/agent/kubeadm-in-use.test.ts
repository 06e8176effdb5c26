/**
 * Tests which kubelet and which client certificate count on a kubeadm host: the kubelet and the certificate in use, and
 * not the files in the usual places.
 */
import { chmod, copyFile, link, rm, symlink } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import { factsScript, probeScript } from '../../src/dialects/kubeadm/host/scripts.ts';
import { createAuthority, issueClient, validFrom } from '../../tools/controlplane/certs.ts';
import { attackedManifest, KubeadmRig, VERSION } from '../attacks/kubeadm-rig.ts';

const kubelet = (version: string): string => `#!/bin/sh\necho Kubernetes ${version}\n`;
const PROCESS = 'proc/1234';
const WORKER = { name: 'w1', role: 'worker' } as const;
const FROM_PATH = 'the version of the file in PATH counts';

/** Returns a host whose PATH has a kubelet of v1.35.1. Its systemd reports `process` as the PID of the kubelet. */
async function hostWith(process: string, state = 'active'): Promise<KubeadmRig> {
  const rig = await KubeadmRig.create();
  await rig.put('usr/bin/kubelet', kubelet('v1.35.1'), 0o755);
  await rig.program(
    'systemctl',
    `case $* in *MainPID*kubelet) echo ${process} ;; is-active*) echo ${state} ;; esac`,
  );
  return rig;
}

async function probed(rig: KubeadmRig) {
  const path = { path: '/none' };
  const { manifest, host } = attackedManifest({ kubeadm: path, kubelet: path });
  const facts = parseFacts(await rig.onHost(probeScript(manifest, host, Date.now())));
  const messages = facts.problems.map(({ severity, message }) => `${severity} ${message}`);
  return { ...facts, messages };
}

test('the kubelet that runs says its version, also after its file was replaced', async () => {
  await using rig = await hostWith('1234');
  await rig.put('old', kubelet('v1.34.2'), 0o755);
  await rig.put(`${PROCESS}/cmdline`, '/usr/bin/kubelet\0');
  await link(rig.at('old'), rig.at(`${PROCESS}/exe`));
  await rm(rig.at('old'));
  const { kubelet: found, messages } = await probed(rig);
  expect(found).toBe('v1.34.2');
  expect(messages.filter((text) => text.includes('kubelet that runs'))).toEqual([]);
  // The script that verifies an upgrade reads the same version.
  expect(parseFacts(await rig.onHost(factsScript(WORKER))).kubelet).toBe('v1.34.2');
});

test('an upgrade would replace another file than the one that runs: the plan is refused', async () => {
  await using rig = await hostWith('1234');
  await rig.put('opt/bin/kubelet', kubelet('v1.34.2'), 0o755);
  await rig.put(`${PROCESS}/cmdline`, '/opt/bin/kubelet\0');
  await symlink(rig.at('opt/bin/kubelet'), rig.at(`${PROCESS}/exe`));
  const { kubelet: found, messages } = await probed(rig);
  expect(found).toBe('v1.34.2');
  const line =
    'hard the kubelet that runs is /opt/bin/kubelet, but the upgrade would replace /usr/bin/kubelet, the first in PATH (';
  expect(messages.filter((text) => text.startsWith(line))).toHaveLength(1);
  await rm(rig.at(`${PROCESS}/exe`));
  await symlink(rig.at('usr/bin/kubelet'), rig.at(`${PROCESS}/exe`));
  const same = await probed(rig);
  expect(same.kubelet).toBe('v1.35.1');
  expect(same.messages.join()).not.toContain('the kubelet that runs');
});

test('the file that runs was renamed, and another one put in its place: the refusal names the restart, too', async () => {
  await using rig = await hostWith('1234');
  await rig.put('usr/bin/kubelet.old', kubelet('v1.34.2'), 0o755);
  await rig.put(`${PROCESS}/cmdline`, '/usr/bin/kubelet\0');
  await symlink(rig.at('usr/bin/kubelet.old'), rig.at(`${PROCESS}/exe`));
  const refusal = (await probed(rig)).messages.find((text) => text.includes('kubelet that runs'));
  expect(refusal).toMatch(
    /^hard the kubelet that runs is \/usr\/bin\/kubelet\.old, but .*: if that one was put there since the start, restart the service kubelet; otherwise set path in the manifest, or remove the file that is not used$/,
  );
});

test.each([
  ['no kubelet runs', '0', 'activating', `warn no kubelet runs on this host: ${FROM_PATH}`],
  ['it has ended, which is told already', '0', 'failed', undefined],
  ['nobody can say', 'unknown', 'active', undefined],
])('the kubelet in PATH counts where %s', async (_name, process, state, line) => {
  await using rig = await hostWith(process, state);
  const { kubelet: found, messages } = await probed(rig);
  expect(found).toBe('v1.35.1');
  expect(messages.filter((text) => text.includes(FROM_PATH))).toEqual(line ? [line] : []);
});

test.each([
  ['others may write to it', async (file: string) => await chmod(file, 0o777)],
  ['it is another program', async (file: string) => await copyFile('/bin/sh', file)],
])('an executable is not believed: %s', async (_name, spoil) => {
  await using rig = await hostWith('1234');
  await rig.put(`${PROCESS}/exe`, rig.evil.replace(VERSION, `Kubernetes ${VERSION}`), 0o755);
  await spoil(rig.at(`${PROCESS}/exe`));
  const { kubelet: found, messages } = await probed(rig);
  expect(found).toBe('v1.35.1');
  const line = `warn the executable of the kubelet (process 1234) cannot be asked for its version, or somebody besides root could change it: ${FROM_PATH}`;
  expect(messages.filter((text) => text.includes(FROM_PATH))).toEqual([line]);
  expect(rig.isOwned).toBe(false);
});

const life = validFrom(Date.now());
const subject = { commonName: 'kubernetes' };
const authority = { ...createAuthority(subject, life), subject };
const issued = (node: string): string =>
  issueClient(authority, { commonName: `system:node:${node}`, organization: 'system:nodes' }, life)
    .certificate;
const inBase64 = (text: string): string => Buffer.from(text).toString('base64');

const kubeconfig = (own: string): string => `apiVersion: v1
clusters: []
contexts:
- context:
    cluster: other
    user: old
  name: old
- name: "own"
  context:
    cluster: c
    user: kubelet
current-context: own # of two
kind: Config
users:
- name: old
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
- name: kubelet
  user:
    ${own}
    client-key: /nobody/reads/this
`;

test.each([
  ['a file', "client-certificate: '/srv/kubelet.pem'", '/srv/kubelet.pem', ''],
  [
    'a file beside it',
    'client-certificate: own.pem',
    '/etc/kubernetes/own.pem',
    '--kubeconfig=/etc/kubernetes/kubelet.conf',
  ],
  [
    'its own text, in a file that an argument names',
    `client-certificate-data: ${inBase64(issued('data'))}`,
    '/srv/own.conf',
    '--v=2\0--kubeconfig\0/srv/own.conf',
  ],
])(
  'the client certificate is that of the kubeconfig in use: %s',
  async (_name, own, file, words) => {
    await using rig = await hostWith('1234');
    await rig.put(`${PROCESS}/cmdline`, `/usr/bin/kubelet\0${words}\0`);
    const [, path = '/etc/kubernetes/kubelet.conf'] = /--kubeconfig.(.*)$/.exec(words) ?? [];
    await rig.put(path, kubeconfig(own));
    // An earlier installation left this certificate.
    await rig.put('var/lib/kubelet/pki/kubelet-client-current.pem', issued('old'));
    if (!own.includes('data')) await rig.put(file, `key\n${issued('data')}${issued('next')}`);
    const { certificates } = await probed(rig);
    expect(certificates).toMatchObject([{ file, isOfKubelet: true, nodeName: 'data' }]);
  },
);

test('a kubeconfig that names none, or in a form that is not read', async () => {
  await using rig = await hostWith('1234');
  const warning =
    'warn cannot read which client certificate /etc/kubernetes/kubelet.conf names, so nobody looks at when it ends';
  for (const [text, told] of [
    [kubeconfig('token: abc').replace(/client-certificate/, 'other'), []],
    ['{"users": [{"name": "a", "user": {"client-certificate": "/a"}}]}', [warning]],
  ] as const) {
    await rig.put('etc/kubernetes/kubelet.conf', text);
    const { certificates, messages } = await probed(rig);
    expect(certificates).toEqual([]);
    expect(messages.filter((each) => each.includes('client certificate'))).toEqual(told);
  }
});

test('the last line of a kubelet that crashes is no fact of its own, whatever it says', async () => {
  await using rig = await KubeadmRig.create();
  await rig.program('systemctl', 'case $* in *NRestarts*kubelet) echo 3 ;; esac');
  // klog writes the line breaks of an error as a backslash and a letter, which `echo` of dash would turn into line breaks.
  const line = String.raw`E1 err="hook failed\nhard=forged\nignores=all\c"`;
  await rig.program('journalctl', `printf '%s\\n' '${line}'`);
  const facts = parseFacts(await rig.onHost(factsScript(WORKER)));
  expect(facts.kubeletCrashes).toEqual({ times: 3, line });
  expect(JSON.stringify({ ...facts, kubeletCrashes: undefined })).not.toContain('forged');
  expect(facts.ground.ignores).toBeUndefined();
});

test.each([
  ['3', { times: 3, line: 'E1 last words' }],
  ['0', undefined],
  ['', undefined],
])('a kubelet that was started again %s times by systemd', async (restarts, wanted) => {
  await using rig = await KubeadmRig.create();
  await rig.program('systemctl', `case $* in *NRestarts*kubelet) echo ${restarts} ;; esac`);
  await rig.program('journalctl', 'case $* in *kubelet.service*) echo E1 last words ;; esac');
  const { kubeletCrashes } = parseFacts(await rig.onHost(factsScript(WORKER)));
  expect(kubeletCrashes).toEqual(wanted);
});
