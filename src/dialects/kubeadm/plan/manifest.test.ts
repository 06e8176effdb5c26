/** Proves how manifests are read, and the message for each mistake. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority, validFrom } from '../../../../tools/controlplane/certs.ts';
import { writeYaml } from '../../../util/yaml.ts';
import { binariesFor, optionsFor } from '../host/scripts.ts';
import { loadManifest, parseManifest } from './manifest.ts';

const HASH = '0123456789abcdef'.repeat(4);
const GOOD = {
  version: '1.36.3',
  hosts: [
    { name: 'cp1', role: 'controlPlane' },
    {
      name: 'w1',
      role: 'worker',
      address: '10.0.0.21',
      port: 2222,
      user: 'core',
      identityFile: './key',
    },
  ],
  binaries: {
    kubeadm: { path: '/opt/kubeadm' },
    kubelet: { url: 'https://example.com/kubelet', sha256: HASH },
  },
};

test('what is left out, and a version without v', () => {
  expect(parseManifest(writeYaml(GOOD), 'cluster.yaml')).toEqual({
    ...GOOD,
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
  });
});

test('what is not in quotes is read as kubectl reads it', () => {
  const read = (...lines: string[]) =>
    parseManifest(`${writeYaml(GOOD)}${lines.join('\n')}\n`, 'cluster.yaml');
  const options = '{ Compression: yes, RekeyLimit: 1G, Tunnel: off }';
  expect(read('workersSkipMinors: on', `ssh: { port: 0o26, options: ${options} }`)).toMatchObject({
    workersSkipMinors: true,
    ssh: { port: 22, options: { Compression: 'yes', RekeyLimit: '1G', Tunnel: 'no' } },
  });
});

test('containerd, with the binaries that it needs', () => {
  const binaries = { containerd: { path: '/c' }, 'containerd-shim-runc-v2': { path: '/s' } };
  const read = (containerd: object) =>
    parseManifest(writeYaml({ ...GOOD, containerd }), 'cluster.yaml').containerd;
  expect(read({ version: '2.3.3', binaries })).toEqual({ version: 'v2.3.3', binaries });
  expect(() => read({ version: '2.3.3', binaries: { containerd: { path: '/c' } } })).toThrow(
    'cluster.yaml: containerd.binaries.containerd-shim-runc-v2: is missing, expected path (a file on the host), or url',
  );
  expect(() => read({ version: '2.4.0-rc.1', binaries })).toThrow(
    'cluster.yaml: containerd.version: "2.4.0-rc.1" is not a release of containerd; use for example v2.3.3',
  );
});

test('binaries of a host, by name, and those of the versions on its way', () => {
  const [cp1, w1] = GOOD.hosts;
  const own = { kubelet: { path: '/opt/arm64/kubelet', sha256: HASH } };
  const onTheWay = { version: '1.35.7', binaries: { kubeadm: { path: '/opt/1.35/kubeadm' } } };
  const hops = [{ version: 'v1.35.7', binaries: GOOD.binaries }];
  const hosts = [cp1, { ...w1, binaries: own, hops: [onTheWay] }];
  const manifest = parseManifest(writeYaml({ ...GOOD, hops, hosts }), 'cluster.yaml');
  expect(manifest.hosts[1]).toEqual({
    ...w1,
    binaries: own,
    hops: [{ ...onTheWay, version: 'v1.35.7' }],
  });
  expect(manifest.hosts.map((host) => binariesFor(manifest, host))).toEqual([
    GOOD.binaries,
    {
      kubeadm: GOOD.binaries.kubeadm,
      kubelet: { ...own.kubelet, field: 'hosts[w1].binaries' },
    },
  ]);
});

test('options of kubeadm: those of a host replace those for all, one by one', () => {
  const kubeadm = { ignorePreflightErrors: ['SystemVerification'], certificateRenewal: false };
  const [cp1, w1] = GOOD.hosts;
  const hosts = [{ ...cp1, kubeadm: { certificateRenewal: true, patches: '/p' } }, w1];
  const manifest = parseManifest(writeYaml({ ...GOOD, kubeadm, hosts }), 'cluster.yaml');
  expect(manifest.hosts.map((host) => optionsFor(manifest, host))).toEqual([
    { ignorePreflightErrors: ['SystemVerification'], certificateRenewal: true, patches: '/p' },
    kubeadm,
  ]);
});

describe('what is wrong', () => {
  const [cp1, w1] = GOOD.hosts;
  const OWN = { kubelet: { path: '/k' } };
  test.each<[string, unknown, string]>([
    [
      'a field that nobody knows',
      { ...GOOD, workers: 2 },
      'the manifest: has no member workers, check the spelling',
    ],
    [
      'one of a host',
      { ...GOOD, hosts: [{ ...cp1, adress: 'x' }] },
      'hosts[0]: it has no member adress (did you mean address?)',
    ],
    ['no hosts', { ...GOOD, hosts: undefined }, 'hosts: is missing, expected a list'],
    [
      'a text for a number',
      { ...GOOD, hosts: [{ ...cp1, port: '22' }] },
      'hosts[0].port: is the text "22", expected a whole number',
    ],
    [
      'another role',
      { ...GOOD, hosts: [{ ...cp1, role: 'master' }] },
      'hosts[0].role: is the text "master", expected controlPlane or worker',
    ],
    [
      'a name that no Node can have',
      { ...GOOD, hosts: [{ ...cp1, name: 'CP_1' }] },
      'hosts[0].name: "CP_1" is not the name of a Node: use lower-case letters, digits, "-" and "."',
    ],
    [
      'a version that is none',
      { ...GOOD, version: '1.36' },
      'version: "1.36" is not a version; use for example v1.36.3',
    ],
    ['a host twice', { ...GOOD, hosts: [cp1, cp1] }, 'hosts: cp1 is listed twice; list each once'],
    [
      'an address twice',
      { ...GOOD, hosts: [{ ...cp1, address: '10.0.0.21', port: 2222 }, w1] },
      'hosts[].address: 10.0.0.21 port 2222 is listed twice; list each once',
    ],
    [
      'no control plane',
      { ...GOOD, hosts: [w1] },
      'hosts: no host has the role controlPlane; add at least one',
    ],
    [
      'a download without a hash',
      { ...GOOD, binaries: { ...GOOD.binaries, kubelet: { url: 'https://example.com/kubelet' } } },
      'binaries.kubelet: is an object, expected path (a file on the host), or url with sha256 (64 hex digits), or a value for each processor, such as {amd64: …, arm64: …}',
    ],
    [
      'a download with a password and without a hash',
      {
        ...GOOD,
        binaries: { ...GOOD.binaries, kubelet: { url: 'https://me:secret@c/kubelet?sig=1' } },
      },
      'binaries.kubelet: is an object, expected path (a file on the host)',
    ],
    [
      'a download of one host without a hash',
      {
        ...GOOD,
        hosts: [cp1, { ...w1, binaries: { kubelet: { url: 'https://example.com/kubelet' } } }],
      },
      'hosts[1].binaries.kubelet: is an object, expected path (a file on the host), or url with sha256 (64 hex digits), or a value for each processor, such as {amd64: …, arm64: …}',
    ],
    [
      'a binary of one host that nobody knows',
      { ...GOOD, hosts: [cp1, { ...w1, binaries: { kubelte: { path: '/k' } } }] },
      'hosts[1].binaries: it has no member kubelte (did you mean kubelet?)',
    ],
    [
      'no binary of a host',
      { ...GOOD, hosts: [cp1, { ...w1, binaries: {} }] },
      'hosts[1].binaries: is an object, expected at least one of kubeadm, kubelet and kubectl',
    ],
    [
      'a version on the way of one host, where there is no way',
      { ...GOOD, hosts: [cp1, { ...w1, hops: [{ version: '1.35.7', binaries: OWN }] }] },
      'hosts[1].hops[0].version: v1.35.7 is not on the upgrade path; the manifest has no hops; add this version under "hops", or remove it from this field',
    ],
    [
      'another version on the way of one host',
      {
        ...GOOD,
        hops: [{ version: '1.35.7', binaries: GOOD.binaries }],
        hosts: [cp1, { ...w1, hops: [{ version: '1.35.6', binaries: OWN }] }],
      },
      'hosts[1].hops[0].version: v1.35.6 is not on the upgrade path; use one of the versions under hops: v1.35.7',
    ],
    [
      'a version twice on the way of one host',
      {
        ...GOOD,
        hops: [{ version: '1.35.7', binaries: GOOD.binaries }],
        hosts: [
          cp1,
          {
            ...w1,
            hops: [
              { version: '1.35.7', binaries: OWN },
              { version: 'v1.35.7', binaries: OWN },
            ],
          },
        ],
      },
      'hosts[1].hops: v1.35.7 is listed twice; list it once',
    ],
    [
      'the same behind a blank, which ssh ignores',
      { ...GOOD, ssh: { options: { ' StrictHostKeyChecking': 'no' } } },
      'ssh.options: " StrictHostKeyChecking" is not the name of an option; use letters and digits alone',
    ],
    [
      'a name that holds a value and a second option',
      { ...GOOD, ssh: { options: { 'StrictHostKeyChecking=no\nUser': 'x' } } },
      'ssh.options: "StrictHostKeyChecking=no\\nUser" is not the name of an option; use letters and digits alone',
    ],
    [
      'an option that would undo the check of host keys',
      { ...GOOD, ssh: { options: { stricthostkeychecking: 'no' } } },
      'ssh.options: stricthostkeychecking is set by Refit; remove it',
    ],
    [
      'an option that would give a host the Kerberos tickets of the user',
      { ...GOOD, ssh: { options: { GSSAPIDelegateCredentials: 'yes' } } },
      'ssh.options: GSSAPIDelegateCredentials is set by Refit; remove it',
    ],
    [
      'an option that would bring forwarded ports back',
      { ...GOOD, ssh: { options: { ClearAllForwardings: 'no' } } },
      'ssh.options: ClearAllForwardings is set by Refit; remove it',
    ],
    [
      'a patches directory that is not on the host',
      { ...GOOD, kubeadm: { patches: './patches' } },
      'kubeadm.patches: "./patches" is not an absolute path on the host',
    ],
    [
      'a check with a flag in its name',
      { ...GOOD, kubeadm: { ignorePreflightErrors: ['all --force'] } },
      'kubeadm.ignorePreflightErrors[0]: "all --force" is not the name of a check of kubeadm\'s preflight',
    ],
    [
      'what kubeadm does not combine, once for all and once for a host',
      {
        ...GOOD,
        kubeadm: { config: '/upgrade.yaml' },
        hosts: [cp1, { ...w1, kubeadm: { etcdUpgrade: false } }],
      },
      'kubeadm: host w1 has config and etcdUpgrade; kubeadm does not combine them: write etcdUpgrade into the file that config names',
    ],
    [
      'a text for a decision',
      { ...GOOD, workersSkipMinors: 'yes' },
      'workersSkipMinors: is the text "yes", expected true or false',
    ],
    [
      'nothing',
      null,
      'is empty or has only comments, expected a manifest with `version` and `hosts`, or a KubeOneCluster',
    ],
  ])('%s', (_name, manifest, line) => {
    expect(() => parseManifest(writeYaml(manifest), 'cluster.yaml')).toThrow(
      `cluster.yaml: ${line}`,
    );
  });

  test('no YAML', () => {
    expect(() => parseManifest('hosts: [', 'cluster.yaml')).toThrow(
      /^cluster\.yaml: cannot be read as YAML: /,
    );
  });

  test('a manifest may end with `---`, start with a comment about apiVersion, and have merge keys', () => {
    const text = writeYaml(GOOD).replace(
      '    role: controlPlane',
      '    <<: {user: core}\n    role: controlPlane',
    );
    const manifest = parseManifest(`# apiVersion: none\n---\n${text}---\n`, 'cluster.yaml');
    expect(manifest.hosts[0]).toMatchObject({ name: 'cp1', user: 'core' });
  });

  test('several documents: none of them would be left out without a word', () => {
    expect(() =>
      parseManifest('version: v1.36.3\n---\nversion: v1.37.0\n', 'cluster.yaml'),
    ).toThrow(
      'cluster.yaml: cannot be read as YAML: it has 2 YAML documents, and may have only one',
    );
  });
});

test('snapshots are encrypted for the certificate of a file, and nothing else of that file is kept', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-manifest-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const { certificate, key } = createAuthority({ commonName: 'backups' }, validFrom(Date.now()));
  await writeFile(join(folder, 'pair.pem'), `${key}${certificate}`);
  await writeFile(
    join(folder, 'cluster.yaml'),
    writeYaml({ ...GOOD, etcdSnapshotCertificate: 'pair.pem' }),
  );
  const { etcdSnapshotCertificate } = await loadManifest(join(folder, 'cluster.yaml'));
  expect(etcdSnapshotCertificate?.trim()).toBe(certificate.trim());
  await writeFile(join(folder, 'pair.pem'), key);
  await expect(loadManifest(join(folder, 'cluster.yaml'))).rejects.toThrow(
    `etcdSnapshotCertificate: ${join(folder, 'pair.pem')} is not a certificate in PEM`,
  );
});

test('all that is wrong beside the schema is told at once', () => {
  const [cp1] = GOOD.hosts;
  const options = { BatchMode: 'no', ' x': 'y' };
  const wrong = {
    ...GOOD,
    hops: [{ version: 'v1.99.0', binaries: GOOD.binaries }],
    hosts: [
      { ...cp1, role: 'worker', options },
      { ...cp1, role: 'worker' },
    ],
    kubeadm: { config: '/c', patches: '/p', etcdUpgrade: false },
  };
  const read = (): unknown => parseManifest(writeYaml(wrong), 'cluster.yaml');
  const told = [
    'hosts: cp1 is listed twice',
    'hosts: no host has the role controlPlane',
    'hosts[0].options: BatchMode is set by Refit',
    'hosts[0].options: " x" is not the name of an option',
    'host cp1 has config and patches, etcdUpgrade',
    'hops[0].version: v1.99.0 is not lower than',
  ];
  for (const each of told) expect(read).toThrow(each);
});

test('paths below the home folder are those of the shell', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-manifest-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const ssh = '{identityFile: ~/.ssh/id, knownHostsFile: ~/.ssh/known_hosts}';
  await writeFile(
    join(folder, 'cluster.yaml'),
    `{version: v1.36.3, kubeconfig: ~/admin.conf, hosts: [{name: cp1, role: controlPlane, identityFile: ~a/id}],
      binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}, ssh: ${ssh}}`,
  );
  const home = homedir();
  expect(await loadManifest(join(folder, 'cluster.yaml'))).toMatchObject({
    kubeconfig: join(home, 'admin.conf'),
    ssh: { identityFile: join(home, '.ssh/id'), knownHostsFile: join(home, '.ssh/known_hosts') },
    hosts: [{ identityFile: join(folder, '~a/id') }],
  });
});

test('a manifest that is not there: the hint names the option and the guide', async () => {
  await expect(loadManifest('no-such-manifest.yaml')).rejects.toMatchObject({
    line: expect.stringMatching(
      /^REFIT_FILE: cannot read no-such-manifest\.yaml: .* \(name the manifest with -m FILE; the guide of Refit about kubeadm /,
    ) as unknown,
  });
});

test.each([
  ['', 'is empty or has only comments, expected a manifest with `version` and `hosts`'],
  ['# nothing\n', 'is empty or has only comments, expected a manifest with `version` and `hosts`'],
  [
    'apiVersion: upgrade.cattle.io/v1\nkind: Plan\n',
    /holds a Plan of upgrade\.cattle\.io\/v1, expected a manifest .*; `refit preview -f` shows/,
  ],
  [
    'apiVersion: upgrade.refit.dev/v1alpha1\nkind: UpgradePolicy\n',
    /holds an UpgradePolicy of .*, expected a manifest .*; `refit validate` checks/,
  ],
])('a file that is no manifest of hosts says what it holds, and what takes it: %j', (text, why) => {
  expect(() => parseManifest(text, 'cluster.yaml')).toThrow(why);
});
