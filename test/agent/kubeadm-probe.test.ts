/**
 * Tests what `plan` reads from a kubeadm host: runs the script of `plan` on real files that replace the files of the
 * host.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseFacts } from '../../src/dialects/kubeadm/host/probe.ts';
import {
  kubeletBody,
  probeScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { type Manifest, parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';

const VERSION = 'v1.36.3';
const HASH = 'ab'.repeat(32);
const manifest = parseManifest(
  `{version: ${VERSION}, hosts: [{name: cp1, role: controlPlane}],
    binaries: {kubeadm: {url: "https://user:secret@example.com/kubeadm", sha256: ${HASH}}, kubelet: {path: /b}}}`,
  'm.yaml',
);
let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'refit-probe-'));
  await put('run/empty', '');
  // Without this, the probe would find a kubeadm that other users of this machine run.
  await program('pgrep', 'exit 1');
  await put('etc/kubernetes/manifests/kube-apiserver.yaml', 'spec:\n  - --secure-port=7443\n');
});
afterEach(async () => await rm(root, { recursive: true }));

async function put(path: string, text: string, mode = 0o644): Promise<void> {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), text, { mode });
}

const program = async (name: string, body: string): Promise<void> =>
  await put(`usr/bin/${name}`, `#!/bin/sh\n${body}\n`, 0o755);

async function onHost(script: string): Promise<string> {
  // ssh may send the locale of the person who runs it.
  const environment = {
    LC_ALL: 'de_DE.UTF-8',
    REFIT_ROOT: root,
    PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}`,
  };
  const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
  return `${stdout}${stderr}`;
}

const facts = async () => await factsOf(manifest);

async function factsOf(given: Manifest) {
  const [host] = given.hosts;
  if (!host) throw new Error('the manifest has no host');
  const found = parseFacts(await onHost(probeScript(given, host, Date.now())));
  return {
    ...found,
    messages: found.problems.map(({ severity, message }) => `${severity} ${message}`),
  };
}

test('a download is tried, and its password stays out of the message', async () => {
  await program('curl', 'echo "curl: (22) The requested URL returned error: 404"; exit 22');
  const line =
    'hard binaries.kubeadm.url: cannot download https://***@example.com/kubeadm: curl: (22) The requested URL returned error: 404';
  expect((await facts()).messages.map((text) => text.replace(/\/\/[^@/]*@/, '//***@'))).toContain(
    line,
  );
  expect((await facts()).messages.join()).not.toContain('secret');
  await program('curl', 'exit 0');
  expect((await facts()).messages.filter((text) => text.includes('download'))).toEqual([]);
});

test.each([
  ['inactive', true],
  ['failed', true],
  ['active', false],
])('a kubelet that is %s: stops the plan: %s', async (state, stops) => {
  await program('systemctl', `echo ${state}`);
  const line = 'hard the kubelet does not run: see journalctl -u kubelet';
  expect((await facts()).messages.includes(line)).toBe(stops);
});

test('what an UpgradeConfiguration switches off is read by its section', async () => {
  const lines = [
    'kind: UpgradeConfiguration',
    'apply:',
    '  etcdUpgrade: false',
    '  # certificateRenewal: false',
  ];
  await put(
    'upgrade.yaml',
    [...lines, 'node:', '  etcdUpgrade: true', '  certificateRenewal: false', ''].join('\n'),
  );
  const config = join(root, 'upgrade.yaml');
  expect((await factsOf({ ...manifest, kubeadm: { config } })).leaves).toEqual([
    'apply:etcdUpgrade:',
    'node:certificateRenewal:',
  ]);
  expect((await facts()).leaves).toEqual([]);
});

test('what an UpgradeConfiguration has kubeadm ignore is read in both forms of a list', async () => {
  const lines = [
    'kind: UpgradeConfiguration',
    'apply:',
    '  ignorePreflightErrors: ["SystemVerification", Swap] # both',
    'node:',
    '  ignorePreflightErrors:',
    '    - ContainerRuntimeVersion',
    '  patches:',
    '    - no name',
  ];
  await put('upgrade.yaml', `${lines.join('\n')}\n`);
  const config = join(root, 'upgrade.yaml');
  expect((await factsOf({ ...manifest, kubeadm: { config } })).ground.ignores).toEqual([
    'SystemVerification',
    'Swap',
    'ContainerRuntimeVersion',
  ]);
});

test('programs speak English and sort by bytes, whatever the locale is', async () => {
  await program('curl', 'echo "in $LC_ALL"; exit 22');
  expect((await facts()).messages.join()).toContain(': in C');
});

test('other static pods that read a kubeconfig of kubeadm are told', async () => {
  const volume = (file: string) => `spec:\n  volumes:\n  - hostPath:\n      path: ${file}\n`;
  for (const [name, file] of [
    ['kube-vip', '/etc/kubernetes/super-admin.conf'],
    ['kube-scheduler', '/etc/kubernetes/scheduler.conf'],
    ['proxy', '/etc/proxy.conf'],
  ] as const)
    await put(`etc/kubernetes/manifests/${name}.yaml`, volume(file));
  expect((await facts()).problems.filter(({ rule }) => rule === 'pod')).toEqual([
    {
      rule: 'pod',
      severity: 'warn',
      message:
        'kube-vip.yaml reads certificates of kubeadm: restart this static pod yourself after they are renewed',
    },
  ]);
});

test.each(['var/lib/kubelet/kubeadm-flags.env', 'etc/default/kubelet', 'etc/sysconfig/kubelet'])(
  "the kubelet's own flag in %s allows cgroup v1",
  async (file) => {
    await put(file, 'KUBELET_KUBEADM_ARGS="--fail-cgroupv1=false"\n');
    await put('sys/fs/cgroup/x', '');
    expect((await facts()).ground.cgroup).toBeUndefined();
  },
);

test.each<[string, boolean, Record<string, string>]>([
  [
    'that its process has from a drop-in of its unit',
    true,
    { 'proc/1234/cmdline': '/usr/bin/kubelet\0--fail-cgroupv1=False\0--v=2\0' },
  ],
  [
    'that a later flag of the same file switches on again',
    false,
    {
      'etc/default/kubelet':
        'KUBELET_EXTRA_ARGS="--fail-cgroupv1=false --fail-cgroupv1=true --v=2"\n',
    },
  ],
  [
    'that a comment has',
    false,
    { 'etc/default/kubelet': '# KUBELET_EXTRA_ARGS=--fail-cgroupv1=false\n' },
  ],
])("the kubelet's flag %s allows cgroup v1: %s", async (_, allows, files) => {
  await program('systemctl', 'case $* in *MainPID*kubelet) echo 1234 ;; esac');
  await put('sys/fs/cgroup/x', '');
  for (const [path, text] of Object.entries(files)) await put(path, text);
  expect((await facts()).ground.cgroup === undefined).toBe(allows);
});

const NETWORK = (version: string): string =>
  JSON.stringify({
    cniVersion: version,
    name: 'pods',
    plugins: [{ type: 'bridge', ipam: { type: 'host-local' } }],
  });
const AT = 'etc/cni/net.d/10-pods.conflist';
const OLD_NETWORK = { [AT]: NETWORK('1.2.0') };
test.each<[string, Record<string, string>, boolean]>([
  ['nothing says which runtime it uses', {}, true],
  [
    'a flag in its file names containerd',
    {
      'var/lib/kubelet/kubeadm-flags.env':
        'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock --v=2"\n',
    },
    true,
  ],
  [
    'a flag in its file names CRI-O',
    {
      'var/lib/kubelet/kubeadm-flags.env':
        'KUBELET_KUBEADM_ARGS="--v=2 --container-runtime-endpoint=unix:///var/run/crio/crio.sock"\n',
    },
    false,
  ],
  [
    'its configuration names cri-dockerd',
    {
      'var/lib/kubelet/config.yaml':
        'kind: KubeletConfiguration\ncontainerRuntimeEndpoint: "unix:///run/cri-dockerd.sock"\n',
    },
    false,
  ],
  [
    'its process names CRI-O, and its files containerd',
    {
      'proc/1234/cmdline':
        '/usr/bin/kubelet\0--container-runtime-endpoint\0unix:///var/run/crio/crio.sock\0--v=2\0',
      'etc/default/kubelet':
        'KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///run/containerd/containerd.sock\n',
    },
    false,
  ],
])(
  'a containerd that lies on the host counts if the kubelet uses it: %s',
  async (_, files, counts) => {
    await program('containerd', 'echo containerd containerd.io 1.6.9 0123');
    await program('systemctl', 'case $* in *MainPID*kubelet) echo 1234 ;; esac');
    for (const [path, text] of Object.entries({ ...OLD_NETWORK, ...files })) await put(path, text);
    const path = { path: '/new' };
    const containerd = {
      version: 'v2.3.3',
      binaries: { containerd: path, 'containerd-shim-runc-v2': path },
    };
    const { ground, messages } = await factsOf({ ...manifest, containerd });
    expect(ground.containerd).toBe(counts ? '1.6.9' : undefined);
    expect(messages.some((text) => text.includes('is of CNI 1.2.0'))).toBe(counts);
    const refused =
      /^hard the kubelet uses unix:\/\/\S+, which is not containerd: leave containerd out/;
    expect(messages.some((text) => refused.test(text))).toBe(!counts);
  },
);

test('the containerd of systemd says nothing about a kubelet that uses another one, such as that of k3s', async () => {
  await program('containerd', 'echo containerd containerd.io 1.6.9 0123');
  await put(AT, NETWORK('1.1.0'));
  const said = async (socket: string) => {
    await put('var/lib/kubelet/config.yaml', `containerRuntimeEndpoint: ${socket}\n`);
    const { ground, messages } = await facts();
    return [ground.containerd, messages.some((text) => text.includes('is of CNI 1.1.0'))];
  };
  expect(await said('unix:///run/k3s/containerd/containerd.sock')).toEqual([undefined, false]);
  expect(await said('unix:///var/run/containerd/containerd.sock')).toEqual(['1.6.9', true]);
});

test('too little disk space for images causes a warning', async () => {
  await put('var/lib/containerd/x', '');
  await program(
    'df',
    'printf "Filesystem 1024-blocks Used Available Capacity Mounted on\\nnone 9 9 524288 9%% /data\\n"',
  );
  const line = 'warn /data has 512 MiB free, new images may need 1024 MiB';
  expect((await facts()).messages).toContain(line);
});

test('a step of a run that was killed makes the host busy, and a warning says that it is waited for', async () => {
  await put('var/lib/refit/kubeadm.lock', '');
  await put('etc/kubernetes/manifests/kube-apiserver.yaml', '');
  await put(
    'proc/net/tcp6',
    '  sl  local_address rem_address st\n   0: 00000000:192B 00000000:0000 0A 0\n',
  );
  const line = 'warn a step of an earlier run is at work: this run waits for its end';
  expect((await facts()).messages).not.toContain(line);
  const hold = spawn(
    'flock',
    [join(root, 'var/lib/refit/kubeadm.lock'), 'sh', '-c', 'echo held; read _'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  await once(hold.stdout, 'data');
  // This is the kubeadm of the step of Refit. No message may advise the operator to end this kubeadm, or to end the
  // holder of the lock.
  await program('pgrep', 'echo 12');
  const { busy, messages } = await facts();
  const step = 'a step of Refit, log /run/refit.*';
  expect([busy, messages.filter((each) => each === line)]).toEqual([[step], [line]]);
  hold.stdin.end();
  await once(hold, 'close');
});

test('another kubeadm, also one in a container, makes the host busy', async () => {
  await put(
    'proc/net/tcp6',
    '  sl  local_address rem_address st\n   0: 00000000:1D13 00000000:0000 0A 0\n',
  );
  await program('pgrep', 'printf "12\\n34\\n"');
  expect((await facts()).busy).toEqual(['kubeadm, process 12', 'kubeadm, process 34']);
});

test('the port of the API server is that of its manifest, which a load balancer need not have', async () => {
  expect((await facts()).apiPort).toBe(7443);
});

test('an API server that listens is not waited for, though its manifest is new: its address must be wrong', async () => {
  expect((await facts()).busy).toEqual(['an API server that starts']);
  await put(
    'proc/net/tcp6',
    '  sl  local_address rem_address st\n   0: 00000000:1D13 00000000:0000 0A 0\n',
  );
  expect((await facts()).busy).toEqual([]);
  await put(
    'proc/net/tcp6',
    '  sl  local_address rem_address st\n   0: 00000000:1D13 0100007F:E0F2 01 0\n',
  );
  expect((await facts()).busy).toEqual(['an API server that starts']);
});

test('kubectl is replaced where it is, staged binaries are removed at the end, and a second run needs none', async () => {
  const kubeadm = 'echo v1.36.3';
  await program('systemctl', 'echo "$*" >>"$REFIT_ROOT/systemctl"');
  await put('new/kubeadm', `#!/bin/sh\n${kubeadm}\n`, 0o755);
  await put('new/kubelet', '#!/bin/sh\necho "Kubernetes v1.36.3"\n', 0o755);
  await put(
    'new/kubectl',
    '#!/bin/sh\nprintf "Client Version: v1.36.3\\nKustomize Version: v5.8.0\\n"\n',
    0o755,
  );
  await program('kubelet', 'echo old');
  await program('kubectl', 'echo old');
  const binaries = {
    kubeadm: { path: '/new/kubeadm' },
    kubelet: { path: '/new/kubelet' },
    kubectl: { path: '/new/kubectl' },
  };
  const context = { rollout: 'r', version: VERSION };
  expect(await onHost(stepScript({ ...context, step: 'stage' }, stageBody({ binaries })))).toBe('');
  const last = stepScript({ ...context, step: 'kubelet' }, kubeletBody(binaries));
  expect([await onHost(last), await onHost(last)]).toEqual(['', '']);
  expect(
    await onHost(
      'kubectl version; kubelet; ls "$REFIT_ROOT/var/lib/refit"; cat "$REFIT_ROOT/systemctl"',
    ),
  ).toBe(
    'Client Version: v1.36.3\nKustomize Version: v5.8.0\nKubernetes v1.36.3\nkubeadm.journal\nkubeadm.lock\nlast.log\nprevious\ndaemon-reload\nrestart kubelet\n',
  );
});

test('a kubectl that snap installed is named as such, and what to do', async () => {
  await program('snap', 'exit 0');
  await symlink('snap', join(root, 'usr/bin/kubectl'));
  const { messages } = await factsOf({
    ...manifest,
    binaries: { ...manifest.binaries, kubectl: { path: '/b' } },
  });
  expect(messages.filter((text) => text.includes('kubectl'))).toEqual([
    'hard kubectl is a snap: run snap remove kubectl and install a package or a file of that name, or leave it out of binaries',
  ]);
});

test('a kubectl of another version is refused', async () => {
  await put('new/kubectl', '#!/bin/sh\necho "Client Version: v1.36.2"\n', 0o755);
  const binary = { path: '/new/kubectl' };
  const body = stageBody({ binaries: { kubeadm: binary, kubelet: binary, kubectl: binary } });
  const script = stepScript({ rollout: 'r', version: VERSION, step: 'stage' }, body);
  expect(await onHost(script)).toContain('binaries.kubeadm has version');
});

const SWAPS = 'Filename Type Size Used Priority\n';
test.each<[string, Record<string, string>, boolean]>([
  ['off', { 'proc/swaps': SWAPS }, false],
  ['on', { 'proc/swaps': `${SWAPS}/dev/sda2 partition 1 0 -2\n` }, true],
  [
    'on, but allowed by failSwapOn of the kubelet: swap causes no warning',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'var/lib/kubelet/config.yaml': 'failSwapOn: false\n',
    },
    false,
  ],
  [
    'on, and allowed by a flag',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--fail-swap-on=false\n',
    },
    false,
  ],
  [
    'on, and allowed by a flag that only the process has',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'proc/1234/cmdline': '/usr/bin/kubelet\0--fail-swap-on=false\0',
    },
    false,
  ],
  [
    'on, and allowed by nothing but a comment',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'etc/default/kubelet': '#KUBELET_EXTRA_ARGS=--fail-swap-on=false\n',
    },
    true,
  ],
  [
    'on, and allowed by nothing but the other kind of comment of systemd',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'etc/default/kubelet': '; KUBELET_EXTRA_ARGS="--fail-swap-on=false"\n',
    },
    true,
  ],
  [
    'on, and allowed by a flag after a tab',
    {
      'proc/swaps': `${SWAPS}/swapfile file 1 0 -2\n`,
      'etc/default/kubelet': 'KUBELET_EXTRA_ARGS="--v=2\t--fail-swap-on=false"\n',
    },
    false,
  ],
])('swap that is %s', async (_, files, warns) => {
  await program('systemctl', 'case $* in *MainPID*kubelet) echo 1234 ;; esac');
  for (const [path, text] of Object.entries(files)) await put(path, text);
  const line =
    'warn swap is on, and the kubelet does not allow it: run swapoff -a, or set failSwapOn: false in its configuration';
  expect((await facts()).messages.includes(line)).toBe(warns);
});

const CALICO_PLUGIN = { type: 'calico', ipam: { type: 'calico-ipam' }, policy: { type: 'k8s' } };
const CALICO = JSON.stringify(
  {
    name: 'k8s-pod-network',
    cniVersion: '0.3.1',
    plugins: [CALICO_PLUGIN, { type: 'portmap', snat: true }],
  },
  undefined,
  2,
);

test.each<[string, Record<string, string>, string[]]>([
  [
    'that is whole',
    { [AT]: NETWORK('1.0.0'), 'opt/cni/bin/bridge': '', 'usr/lib/cni/host-local': '' },
    [],
  ],
  [
    'in a folder of its own',
    {
      [AT]: NETWORK('1.0.0'),
      'etc/containerd/config.toml': '[plugins]\n  bin_dirs = ["/srv/cni"]\n',
      'srv/cni/bridge': '',
      'srv/cni/host-local': '',
    },
    [],
  ],
  [
    'whose files are not all there',
    { [AT]: NETWORK('1.0.0'), 'opt/cni/bin/bridge': '' },
    [
      'warn no CNI plugin host-local in /opt/cni/bin, which /etc/cni/net.d/10-pods.conflist names: pods will not start on this host',
    ],
  ],
  [
    'newer than containerd, where another configuration comes later',
    {
      [AT]: NETWORK('1.2.0'),
      'etc/cni/net.d/20.conf': '{"type": "other"}',
      'opt/cni/bin/bridge': '',
      'opt/cni/bin/host-local': '',
    },
    [
      'warn /etc/cni/net.d/10-pods.conflist is of CNI 1.2.0, and this containerd knows 1.1.0 at most: upgrade containerd first',
    ],
  ],
  [
    'of Calico, as its manifest writes it',
    {
      'etc/cni/net.d/10-calico.conflist': CALICO,
      'opt/cni/bin/calico': '',
      'opt/cni/bin/calico-ipam': '',
      'opt/cni/bin/portmap': '',
    },
    [],
  ],
])('Refit checks the files and the version of a network plugin %s', async (_, files, warnings) => {
  for (const [path, text] of Object.entries(files)) await put(path, text);
  for (const path of Object.keys(files).filter((each) => each.includes('/cni/')))
    await chmod(join(root, path), 0o755);
  expect((await facts()).messages.filter((message) => /CNI/.test(message))).toEqual(warnings);
});
