/**
 * Tests which container of a static pod manifest is the component, and which other files in the folder of static pods
 * `plan` reports. The scripts run on real files.
 */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wholeScript } from '../../src/dialects/kubeadm/host/filled-script.ts';
import { parseFacts, readFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import { prepareScript, probeScript } from '../../src/dialects/kubeadm/host/scripts.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';

const manifest = parseManifest(
  '{version: v1.36.3, hosts: [{name: cp1, role: controlPlane}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}',
  'm.yaml',
);
const [host] = manifest.hosts;
if (host === undefined) throw new Error('the manifest has no host');

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-manifests-'));
  for (const folder of ['run', 'usr/bin', 'var/lib', 'etc/kubernetes/manifests'])
    await mkdir(join(root, folder), { recursive: true });
  // Without this, the probe would find a kubeadm that other users of this machine run.
  for (const name of ['pgrep', 'systemctl'])
    await writeFile(join(root, 'usr/bin', name), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  await writeFile(join(root, 'etc/kubernetes/controller-manager.conf'), '');
});
afterEach(async () => await rm(root, { recursive: true }));

async function onHost(script: string): Promise<string> {
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return `${stdout}${stderr}`;
}

const put = async (name: string, text: string): Promise<void> =>
  await writeFile(join(root, 'etc/kubernetes/manifests', name), text);

const AUDIT = `  - name: audit
    image: registry.local:5000/audit:v0.7.0
    args: ["--secure-port=1", '--etcd-servers=http://a,http://b']
`;
/** The form that kubeadm writes. The keys of a container are in the order of the alphabet, so its name comes last. */
const SERVER = `  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.1
    - --secure-port=7443
    image: registry.local:5000/kube-apiserver:v1.36.2
    name: kube-apiserver
    volumeMounts:
    - mountPath: /etc/kubernetes/pki
      name: k8s-certs
`;
const podOf = (containers: string, init = '', name = 'kube-apiserver'): string => `apiVersion: v1
kind: Pod
metadata:
  labels:
    component: ${name}
  name: ${name}
  namespace: kube-system
spec:
${init}  containers:
${containers}  hostNetwork: true
`;
const POD = podOf(SERVER);

const factsNow = async () =>
  await readFacts(
    { run: async (_host, script) => ({ code: 0, stdout: await onHost(script), stderr: '' }) },
    host,
  );

test.each([
  ['as kubeadm writes it', POD],
  ['after another container', podOf(AUDIT + SERVER)],
  ['before another container', podOf(SERVER + AUDIT)],
  ['after an init container of any name', podOf(SERVER, `  initContainers:\n${AUDIT}`)],
  [
    'known by its program alone',
    podOf(
      AUDIT +
        SERVER.replace('name: kube-apiserver', 'name: server').replace(
          '- kube-',
          '- /usr/local/bin/kube-',
        ),
    ),
  ],
  [
    'with arguments apart from the command, in one line and quoted',
    podOf(`${AUDIT}  - name: "kube-apiserver" # ours
    args: ['--v=2', "--secure-port=7443"]
    command: [kube-apiserver]
    image: 'registry.local:5000/kube-apiserver:v1.36.2@sha256:0123'
`),
  ],
  [
    'with the value of a flag as a word of its own',
    podOf(SERVER.replace('--secure-port=7443', '--secure-port\n    - "7443"')),
  ],
  ['with the list as far to the left as its key', podOf((AUDIT + SERVER).replaceAll(/^/gm, '  '))],
  ['with line ends of Windows', podOf(AUDIT + SERVER).replaceAll('\n', '\r\n')],
  ['in the first of two documents', `---\n${POD}---\n${podOf(AUDIT)}`],
])('the API server is found in its manifest %s', async (_name, text) => {
  await put('kube-apiserver.yaml', text);
  const { staticPods, apiPort, unreadImages } = await factsNow();
  expect({ staticPods, apiPort, unreadImages }).toEqual({
    staticPods: { 'kube-apiserver': 'v1.36.2' },
    apiPort: 7443,
    unreadImages: undefined,
  });
});

test('etcd, the controller manager and the scheduler are found beside other containers, too', async () => {
  for (const name of ['etcd', 'kube-controller-manager', 'kube-scheduler'])
    await put(
      `${name}.yaml`,
      podOf(`${AUDIT}${SERVER.replaceAll('kube-apiserver', name)}`, '', name),
    );
  expect((await factsNow()).staticPods).toEqual({
    etcd: 'v1.36.2',
    'kube-controller-manager': 'v1.36.2',
    'kube-scheduler': 'v1.36.2',
  });
});

test.each([
  ['a tag', 'registry.local:5000/kube-apiserver:v1.36.2', 'v1.36.2'],
  ['a tag and a digest', 'registry.local:5000/kube-apiserver:v1.36.2@sha256:0123', 'v1.36.2'],
  ['quotes', '"registry.local/kube-apiserver:v1.36.2"', 'v1.36.2'],
  ['no tag behind the port of a registry', 'registry.local:5000/kube-apiserver', 'kube-apiserver'],
])('a roll-back reads the version of an image with %s', async (_name, image, version) => {
  await put('kube-apiserver.yaml', podOf(AUDIT + SERVER.replace(/image: .*/, `image: ${image}`)));
  const script = `${wholeScript('parts/static-pods.sh')}\ntell_version kube-apiserver\n`;
  expect(await onHost(script)).toBe(`kube-apiserver ${version}\n`);
});

describe('the folder of static pods', () => {
  const problems = async (): Promise<string[]> =>
    parseFacts(await onHost(probeScript(manifest, host, Date.now())))
      .problems.filter(({ message }) =>
        /^\/etc\/kubernetes\/manifests|\.yaml has no container/.test(message),
      )
      .map(({ severity, message }) => `${severity} ${message}`);
  const folder = '/etc/kubernetes/manifests';
  const why = 'the kubelet reads every file there whose name does not begin with a dot';
  const isCopy = (file: string) =>
    `hard ${folder}/${file} defines the pod kube-apiserver a second time, and ${why}: kubeadm does not upgrade this file, and the kubelet may run it instead of kube-apiserver.yaml; move it to another folder`;

  test.each([
    'kube-apiserver.yaml.backup',
    'kube-apiserver-old.yaml',
    'kube-apiserver.yaml~',
    '#kube-apiserver.yaml#',
    'apiserver',
  ])('has a copy of the API server that stops the plan: %s', async (name) => {
    await put('kube-apiserver.yaml', POD);
    expect(await problems()).toEqual([]);
    await put(name, `# ours\n${POD}`);
    expect(await problems()).toEqual([isCopy(name)]);
  });

  test('has a copy in JSON or behind a link that stops the plan', async () => {
    await put('kube-apiserver.yaml', POD);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        annotations: { a: 'b' },
        labels: {},
        name: 'kube-apiserver',
        namespace: 'kube-system',
      },
      spec: { containers: [{ name: 'kube-apiserver' }] },
    };
    await put('a.json', JSON.stringify(pod, null, 2));
    await writeFile(join(root, 'elsewhere'), POD);
    await symlink(join(root, 'elsewhere'), join(root, 'etc/kubernetes/manifests/b'));
    expect(await problems()).toEqual([isCopy('a.json'), isCopy('b')]);
  });

  test('may have what the kubelet does not read, and pods of other people', async () => {
    await put('kube-apiserver.yaml', POD);
    await put('.kube-apiserver.yaml.refit', POD);
    await put('.kube-apiserver.yaml.swp', 'x');
    await mkdir(join(root, 'etc/kubernetes/manifests/old'));
    await put('old/kube-apiserver.yaml', POD);
    await put('kube-vip.yml', podOf(AUDIT, '', 'kube-vip'));
    expect(await problems()).toEqual([]);
  });

  test('has other files that cause warnings', async () => {
    await put('kube-apiserver.yaml', POD);
    await put('kube-vip.yaml', podOf(AUDIT, '', 'kube-vip'));
    await put('notes.txt', 'restart the API server after you edit it\n');
    await put('kube-vip.yaml~', podOf(AUDIT, '', 'kube-vip'));
    await put('second.yaml', podOf(SERVER, '', 'second'));
    const both = (one: string, two: string) =>
      `warn ${folder}/${one} and ${two} define the same pod kube-vip, and ${why}: the kubelet runs only one of them; move the other one to another folder`;
    expect(await problems()).toEqual([
      both('kube-vip.yaml', 'kube-vip.yaml~'),
      both('kube-vip.yaml~', 'kube-vip.yaml'),
      `warn ${folder}/notes.txt is no manifest of a pod, and ${why}: move it to another folder`,
      `warn ${folder}/second.yaml runs another kube-apiserver: kubeadm does not upgrade it`,
    ]);
  });

  test('has a manifest of kubeadm without the component, which the plan refuses by its cause', async () => {
    await put('kube-apiserver.yaml', podOf(AUDIT));
    await put('etcd.yaml', JSON.stringify({ kind: 'Pod', spec: { containers: [] } }));
    const lacks = (name: string) =>
      `hard ${name}.yaml has no container that is named ${name} or runs it, in the form that kubeadm writes: Refit cannot read its version and flags`;
    expect(await problems()).toEqual([lacks('etcd'), lacks('kube-apiserver')]);
  });

  test('has a copy that stops an upgrade before anything is staged, also by the agent', async () => {
    await put('kube-apiserver.yaml', POD);
    await put('kube-apiserver.yaml.backup', POD);
    expect(await onHost(prepareScript(manifest, host, false))).toBe(
      `${isCopy('kube-apiserver.yaml.backup').slice('hard '.length)}\n`,
    );
  });
});
