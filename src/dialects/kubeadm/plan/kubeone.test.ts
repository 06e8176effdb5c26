/** Proves how KubeOne's own manifest is read, and the message for each mistake. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { loadManifest, parseManifest } from './manifest.ts';

const CP1 = {
  publicAddress: '203.0.113.1',
  privateAddress: '10.0.0.11',
  sshPort: 2222,
  sshUsername: 'ubuntu',
  sshPrivateKeyFile: './id',
  bastion: 'bastion.example.com',
  bastionUser: 'jump',
  hostname: 'cp1',
  isLeader: true,
};
const GOOD = {
  apiVersion: 'kubeone.k8c.io/v1beta3',
  kind: 'KubeOneCluster',
  name: 'demo',
  versions: { kubernetes: '1.36.3' },
  cloudProvider: { hetzner: {}, external: true },
  controlPlane: { hosts: [CP1, { privateAddress: '10.0.0.12', hostname: 'cp2', taints: [] }] },
  staticWorkers: {
    hosts: [
      { publicAddress: 'w1.example.com', sshAgentSocket: 'env:MY_AGENT', sshCertFile: '/c.pub' },
    ],
  },
  dynamicWorkers: [{ name: 'pool' }],
  addons: { addons: [] },
};
const read = (value: unknown) => parseManifest(stringify(value), 'kubeone.yaml');

test('hosts, how to reach them, and the version; what is not read is named', () => {
  expect(read(GOOD)).toEqual({
    version: 'v1.36.3',
    hops: [],
    workersSkipMinors: false,
    concurrent: 1,
    etcdSnapshots: 2,
    approveServingCertificates: false,
    addons: [],
    allow: [],
    kubeadm: {},
    ssh: {},
    hosts: [
      {
        name: 'cp1',
        role: 'controlPlane',
        address: '203.0.113.1',
        port: 2222,
        user: 'ubuntu',
        identityFile: './id',
        bastion: { address: 'bastion.example.com', port: 22, user: 'jump' },
        options: {},
      },
      { name: 'cp2', role: 'controlPlane', address: '10.0.0.12', options: {} },
      {
        name: 'unnamed-3',
        role: 'worker',
        address: 'w1.example.com',
        options: { CertificateFile: '/c.pub', IdentityAgent: '$MY_AGENT' },
      },
    ],
    binaries: {
      kubeadm: { path: '/opt/kubernetes/v1.36.3/kubeadm' },
      kubelet: { path: '/opt/kubernetes/v1.36.3/kubelet' },
    },
    kubeOne: {
      name: 'demo',
      untouched: [
        'cloudProvider',
        'dynamicWorkers',
        'addons',
        'hosts[].isLeader',
        'hosts[].taints',
      ],
      asked: 'hostname -f',
    },
  });
});

test('v1beta2 with a leading v, as `kubeone config dump` writes empty fields; Azure has short names', () => {
  const host = {
    publicAddress: '',
    privateAddress: '10.0.0.11',
    ipv6Addresses: null,
    hostname: 'cp1',
    taints: null,
  };
  const { version, hosts, kubeOne } = read({
    ...GOOD,
    apiVersion: 'kubeone.k8c.io/v1beta2',
    cloudProvider: { azure: {} },
    versions: { kubernetes: 'v1.36.3' },
    controlPlane: { hosts: [host], nodeSets: null },
    staticWorkers: {},
  });
  expect([version, hosts, kubeOne?.asked]).toEqual([
    'v1.36.3',
    [{ name: 'cp1', role: 'controlPlane', address: '10.0.0.11', options: {} }],
    'hostname',
  ]);
  expect(kubeOne?.untouched).toContain('controlPlane.nodeSets');
});

test('known_hosts and the kubeconfig that KubeOne wrote count if they lie beside it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-kubeone-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const file = join(folder, 'kubeone.yaml');
  await writeFile(file, stringify(GOOD));
  expect(await loadManifest(file)).toMatchObject({
    ssh: {},
    hosts: [{ identityFile: join(folder, 'id') }, {}, {}],
  });
  expect((await loadManifest(file)).kubeconfig).toBeUndefined();
  for (const name of ['known_hosts', 'demo-kubeconfig']) await writeFile(join(folder, name), '');
  expect(await loadManifest(file)).toMatchObject({
    kubeconfig: join(folder, 'demo-kubeconfig'),
    ssh: { knownHostsFile: join(folder, 'known_hosts') },
  });
});

describe('what is wrong', () => {
  const first = (change: object) => ({ ...GOOD, controlPlane: { hosts: [{ ...CP1, ...change }] } });
  test.each<[string, unknown, string]>([
    [
      'a version of the kind that KubeOne no longer has',
      { ...GOOD, apiVersion: 'kubeone.k8c.io/v1beta1' },
      'apiVersion: is the text "kubeone.k8c.io/v1beta1", expected kubeone.k8c.io/v1beta2 or kubeone.k8c.io/v1beta3',
    ],
    [
      'a version that is none',
      { ...GOOD, versions: { kubernetes: '1.36' } },
      'versions.kubernetes: "1.36" is not a version; use for example v1.36.3',
    ],
    [
      'hosts that Terraform knows',
      { ...GOOD, controlPlane: {} },
      'controlPlane.hosts: it is missing or empty; if only Terraform knows the hosts, run `terraform output -json > tf.json` and `kubeone config dump -m kubeone.yaml -t tf.json > with-hosts.yaml`, and use with-hosts.yaml',
    ],
    [
      'no control plane, because Terraform knows the hosts',
      { ...GOOD, controlPlane: undefined },
      'controlPlane: it is missing or empty; if only Terraform knows the hosts, run `terraform output -json > tf.json`',
    ],
    [
      'an empty list of hosts, because Terraform knows them',
      { ...GOOD, controlPlane: { hosts: [] } },
      'controlPlane.hosts: it is missing or empty; if only Terraform knows the hosts, run `terraform output -json > tf.json`',
    ],
    [
      'a text for a number',
      first({ sshPort: '22' }),
      'controlPlane.hosts[0].sshPort: is the text "22", expected a whole number',
    ],
    [
      'a field that nobody knows',
      first({ sshPrivatKeyFile: 'x' }),
      'controlPlane.hosts[0]: it has no member sshPrivatKeyFile (did you mean sshPrivateKeyFile?)',
    ],
    [
      'no address',
      { ...GOOD, controlPlane: { hosts: [{ publicAddress: '', hostname: 'cp1' }] } },
      'controlPlane.hosts[0]: it has neither publicAddress nor privateAddress; give one',
    ],
    [
      'a name that no Node can have',
      first({ hostname: 'CP_1' }),
      'controlPlane.hosts[0].hostname: "CP_1" is not the name of a Node',
    ],
    [
      'a name that leads to another folder',
      { ...GOOD, name: '../demo' },
      'name: "../demo" is not a name; use lower-case letters, digits, "-" and "."',
    ],
    [
      'an address that is a command',
      first({ publicAddress: '$(reboot)' }),
      'controlPlane.hosts[0].publicAddress: "$(reboot)" is not an address; use a host name or an IP address',
    ],
    [
      'a worker twice',
      { ...GOOD, staticWorkers: { hosts: [CP1] } },
      'hosts: cp1 is listed twice; list each once',
    ],
    [
      'workers under another name',
      { ...GOOD, staticWorkers: { host: [CP1] } },
      'staticWorkers: it has no member host (did you mean hosts?)',
    ],
  ])('%s', (_name, value, line) => {
    expect(() => read(value)).toThrow(`kubeone.yaml: ${line}`);
  });

  test('an option that would undo the check of host keys, for one host', () => {
    const host = { name: 'cp1', role: 'controlPlane', options: { StrictHostKeyChecking: 'no' } };
    const binaries = { kubeadm: { path: '/a' }, kubelet: { path: '/b' } };
    const line = 'cluster.yaml: hosts[0].options: StrictHostKeyChecking is set by Refit; remove it';
    expect(() =>
      parseManifest(stringify({ version: '1.36.3', hosts: [host], binaries }), 'cluster.yaml'),
    ).toThrow(line);
  });
});
