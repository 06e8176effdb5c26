/** Proves how the output of the probe becomes the facts of a host. */
import { expect, test } from 'vitest';
import { hard, warn } from '../../../versions/findings.ts';
import { type HostFacts, parseFacts, tagOf } from './probe.ts';

test.each([
  ['registry.k8s.io/kube-apiserver:v1.36.3', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver:v1.36.3', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver:v1.36.3@sha256:0123', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver', undefined],
  ['registry.k8s.io/kube-apiserver@sha256:0123', undefined],
  ['registry.k8s.io/kube-apiserver:latest', undefined],
  ['registry.local/kube-apiserver:v1.36.2_fips.0', 'v1.36.2+fips.0'],
  ['registry.local/etcd:v3.5.9_fips.0', 'v3.5.9+fips.0'],
  ['"registry.local:5000/kube-apiserver:v1.36.3"', 'v1.36.3'],
  ["'registry.local/etcd:3.5.21-0' # ours", '3.5.21-0'],
  ['registry.local/etcd:3.5.21-0 # ours', '3.5.21-0'],
])('the tag of %s', (image, tag) => {
  expect(tagOf(image)).toBe(tag);
});

test('images without a version are named as they stand in the manifests', () => {
  const lines = [
    'image.etcd="registry.local/etcd@sha256:0123"',
    'image.kube-apiserver=registry.local/kube-apiserver:latest',
    'image.kube-scheduler=registry.local/kube-scheduler:v1.36.3',
  ];
  const { staticPods, unreadImages } = parseFacts(lines.join('\n'));
  expect(staticPods).toEqual({ 'kube-scheduler': 'v1.36.3' });
  expect(unreadImages).toEqual({
    etcd: 'registry.local/etcd@sha256:0123',
    'kube-apiserver': 'registry.local/kube-apiserver:latest',
  });
});

test('what a host says of itself and no rule can read stays as it was said', () => {
  const text = ['kernel=unknown', 'cgroup=', 'containerd=containerd: not found', ''].join('\n');
  expect(parseFacts(text).ground).toEqual({
    kernel: 'unknown',
    cgroup: 'no output',
    containerd: 'containerd: not found',
  });
});

test('Refit reads the facts of a control-plane host in the middle of an upgrade', () => {
  const lines = [
    'kubeadm=v1.36.3',
    'kubelet=v1.36.2',
    'kernel=4.18.0-553.el8_10.x86_64',
    'cgroup=cgroup2fs',
    'busy=kubeadm, process 12',
    'apiPort=7443',
    'hard=no kubeadm in PATH',
    'warn=swap is on',
    'stopped=the kubelet does not run',
    'clock=its clock is off',
    'containerd=containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da',
    'image.kube-apiserver=registry.local:5000/kube-apiserver:v1.36.3',
    'image.kube-scheduler=registry.local:5000/kube-scheduler:v1.36.2',
    'missing=kube-controller-manager run /etc/kubernetes/tmp/kubeadm-backup-manifests-1/kube-controller-manager.yaml',
    '',
  ];
  expect(parseFacts(lines.join('\n'))).toEqual({
    kubeadm: 'v1.36.3',
    kubelet: 'v1.36.2',
    ground: { kernel: '4.18', cgroup: 2, containerd: '1.7.27' },
    problems: [
      hard('host', 'no kubeadm in PATH'),
      warn('host', 'swap is on'),
      hard('kubelet', 'the kubelet does not run'),
      warn('clock', 'its clock is off'),
    ],
    busy: ['kubeadm, process 12'],
    apiPort: 7443,
    staticPods: { 'kube-apiserver': 'v1.36.3', 'kube-scheduler': 'v1.36.2' },
    certificates: [],
    leaves: [],
    etcd: undefined,
    missing: [
      {
        name: 'kube-controller-manager',
        backup: 'run',
        detail: '/etc/kubernetes/tmp/kubeadm-backup-manifests-1/kube-controller-manager.yaml',
      },
    ],
  });
});

test('a host with nothing on it', () => {
  expect(parseFacts('kubeadm=\nkubelet=\n')).toEqual({
    kubeadm: undefined,
    kubelet: undefined,
    ground: {},
    problems: [],
    busy: [],
    apiPort: undefined,
    staticPods: {},
    missing: [],
    certificates: [],
    leaves: [],
    etcd: undefined,
  });
});

test.each<[string, HostFacts['ground']]>([
  ['cgroup=tmpfs', { cgroup: 1 }],
  ['cgroup=ext2/ext3', { cgroup: 'ext2/ext3' }],
  [
    'containerd=containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7',
    { containerd: '2.1.4' },
  ],
  ['containerd=sh: containerd: not found', { containerd: 'sh: containerd: not found' }],
  ['kernel=6.1.0-18-amd64', { kernel: '6.1' }],
])('what a kubelet stands on: %s', (line, wanted) => {
  expect(parseFacts(line).ground).toEqual(wanted);
});

test('what a binary prints instead of its version is none', () => {
  const { kubeadm, kubelet } = parseFacts('kubeadm=WARNING: cgo disabled\nkubelet=garbage\n');
  expect([kubeadm, kubelet]).toEqual([undefined, undefined]);
});

test.each([
  ['1', 1],
  ['65535', 65_535],
  ['65536', undefined],
  ['0', undefined],
  ['-1', undefined],
  ['64.5', undefined],
  ['any', undefined],
])('the port %s of an API server', (text, port) => {
  expect(parseFacts(`apiPort=${text}`).apiPort).toBe(port);
});

test('the backups of missing manifests, by who made them', () => {
  const lines = ['run', 'hand', 'refused', 'other'].map(
    (backup) => `missing=kube-scheduler ${backup} of ${backup} today`,
  );
  expect(parseFacts([...lines, 'missing=a b run c'].join('\n')).missing).toEqual(
    ['run', 'hand', 'refused'].map((backup) => ({
      name: 'kube-scheduler',
      backup,
      detail: `of ${backup} today`,
    })),
  );
});

test.each([
  ['12 panic: no disk', { times: 12, line: 'panic: no disk' }],
  ['1 ', { times: 1, line: '' }],
  ['at least 2 times', undefined],
])('the crashes of a kubelet in the line "%s"', (text, crashes) => {
  expect(parseFacts(`kubeletCrashes=${text}`).kubeletCrashes).toEqual(crashes);
});

test('a warning about pods, the phases that are left out, and the answer of etcd', () => {
  const text =
    'pod=w is on no node\nleaves=apply:etcdUpgrade:\netcd=404 page not found\nignores=Mem';
  expect(parseFacts(text)).toMatchObject({
    problems: [warn('pod', 'w is on no node')],
    leaves: ['apply:etcdUpgrade:'],
    etcd: false,
    ground: { ignores: ['Mem'] },
  });
});

test('a kernel begins with its version, and a text that is none is kept in short', () => {
  expect(parseFacts('kernel=10.12.3-ours').ground.kernel).toBe('10.12');
  expect(parseFacts('kernel=linux 5.10').ground.kernel).toBe('linux 5.10');
  expect(parseFacts(`kernel=${'x'.repeat(100)}`).ground.kernel).toBe('x'.repeat(60));
});

test('the image of a tag is its last part, where a mark within it is none', () => {
  expect(tagOf(`r/a"b"c:v1.36.3`)).toBe('v1.36.3');
  expect(tagOf('r:5000/one/two/kube-apiserver:v1.36.3')).toBe('v1.36.3');
});
