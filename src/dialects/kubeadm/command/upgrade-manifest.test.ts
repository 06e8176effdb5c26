/** Tests `refit upgrade -m`, which writes another version into the manifest of a kubeadm cluster. */
import { createHash } from 'node:crypto';
import {
  chmod,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startStubServer } from '../../../../test/faults/stub-server.ts';
import type { UpgradeFlags } from '../../../cli/contract/upgrade-way.ts';
import { plainOutput } from '../../../cli/output.ts';
import { describeProblem } from '../../../kube/status-error.ts';
import { systemClock } from '../../../util/clock.ts';
import { upgradeManifest } from './upgrade-manifest.ts';

const OLD = 'v1.36.2';
const NEW = 'v1.36.3';
const things = new AsyncDisposableStack();
const files = new Map<string, string>();
let folder = '';
let place = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refit-manifest-'));
  things.defer(async () => await rm(folder, { recursive: true }));
  const server = things.use(
    await startStubServer(({ url }, response) => {
      const body = files.get(url);
      response.writeHead(body === undefined ? 404 : 200).end(body);
    }),
  );
  place = `http://127.0.0.1:${server.port}`;
});

beforeEach(() => files.clear());
afterAll(async () => await things.disposeAsync());

async function upgrading(text: string, version = NEW, flags: Partial<UpgradeFlags> = {}) {
  const manifest = join(folder, 'cluster.yaml');
  await writeFile(manifest, text, { mode: 0o640 });
  let said = '';
  const write = (piece: string): void => {
    said += piece;
  };
  const output = { ...plainOutput, write };
  const parts = {
    clock: systemClock,
    output,
    abort: new AbortController().signal,
    environment: {},
  };
  const all = { apiPort: 6443, manifest, yes: true, ...flags };
  const error = await upgradeManifest(version, all, parts).then(
    () => '',
    (failure: unknown) => describeProblem(failure).line,
  );
  const { mode } = await stat(manifest);
  return { said, error, mode: mode & 0o777, text: await readFile(manifest, 'utf8') };
}

const paths = (version: string): string => `# The cluster of the shop.
version: "${version}"   # keep in step with the hosts
hosts:
  - { name: cp1, address: 10.0.0.11, role: controlPlane }
  - name: w1
    role: worker
    binaries: {kubelet: { path: '/opt/${version}/arm/kubelet' }}
binaries:
  kubeadm: { path: /opt/kubernetes/${version}/kubeadm }
  kubelet: { path: /opt/kubernetes/${version.slice(1)}/kubelet }
`;

test('version and paths are changed, and comments, quotes and the rest of the file stay', async () => {
  const { said, error, text, mode } = await upgrading(paths(OLD));
  expect([error, text, mode]).toEqual(['', paths(NEW), 0o640]);
  expect(said).toContain(
    '-version: "v1.36.2"   # keep in step with the hosts\n+version: "v1.36.3"',
  );
  expect(said).toContain('refit kubeadm apply -m');
  expect(await readdir(folder)).toEqual(['cluster.yaml']);
});

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
const downloads = (version: string, kubeadm: string, amd64: string): string => `version: ${version}
hosts: [{ name: cp1, role: controlPlane }]
binaries:
  kubeadm: { url: ${place}/${version}/kubeadm, sha256: ${kubeadm} }
  kubelet:
    url: ${place}/${version}/{arch}/kubelet
    sha256: { amd64: ${amd64} }
`;

test('each sha256 is that beside the file, or that of the file', async () => {
  files.set(`/${NEW}/kubeadm.sha256`, `${'ab'.repeat(32)}\n`);
  files.set(`/${NEW}/kubeadm`, 'kubeadm');
  files.set(`/${NEW}/amd64/kubelet`, 'kubelet');
  const before = downloads(OLD, 'cd'.repeat(32), 'ef'.repeat(32));
  const { said, error, text } = await upgrading(before);
  expect([error, text]).toEqual(['', downloads(NEW, 'ab'.repeat(32), digest('kubelet'))]);
  expect(said).toContain(
    `binaries.kubeadm.sha256: ${'ab'.repeat(32)}, from ${place}/${NEW}/kubeadm.sha256.`,
  );
  expect(said).toContain('from the file itself.');
});

test('a version that is not published changes nothing', async () => {
  const before = downloads(OLD, 'cd'.repeat(32), 'ef'.repeat(32));
  const { error, text } = await upgrading(before);
  expect(error).toContain(`${place}/${NEW}/kubeadm cannot be had: `);
  expect(text).toBe(before);
});

const kubeOne = (version: string): string => `apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: shop
versions:
  kubernetes: ${version} # by hand
controlPlane:
  hosts: [{ publicAddress: 10.0.0.11, hostname: cp1 }]
`;

test('the manifest of KubeOne keeps its form, and its version has no v if it had none', async () => {
  expect((await upgrading(kubeOne('1.36.2'))).text).toBe(kubeOne('1.36.3'));
  expect((await upgrading(kubeOne(OLD), '1.36.3')).text).toBe(kubeOne(NEW));
});

test('all fields that cannot be changed are named at once', async () => {
  const { error } = await upgrading(`version: ${OLD}
hosts: [{ name: cp1, role: controlPlane }]
binaries:
  kubeadm: { path: /opt/new/kubeadm }
  kubelet: { path: /opt/${OLD}/kubelet, sha256: ${'ab'.repeat(32)} }
  kubectl: { url: "https://example.com/${OLD}/{arch}/kubectl", sha256: ${'ab'.repeat(32)} }
`);
  expect(error).toContain('binaries.kubeadm.path does not name v1.36.2');
  expect(error).toContain('binaries.kubelet.sha256 is the SHA-256 of a file on the hosts');
  expect(error).toContain('binaries.kubectl.sha256 is one SHA-256 for all processors');
});

test.each<[string, string, string]>([
  [
    'a longer version that begins with the present one',
    `version: ${OLD}\nhosts: [{ name: cp1, role: controlPlane }]\nbinaries:\n  kubeadm: { path: /opt/${OLD}0/kubeadm }\n  kubelet: { path: /opt/1${OLD.slice(1)}/kubelet }\n`,
    'binaries.kubeadm.path does not name v1.36.2',
  ],
  [
    'an alias of YAML',
    `apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\nname: &v ${OLD}\nversions: { kubernetes: *v }\ncontrolPlane: { hosts: [{ publicAddress: 10.0.0.11 }] }\n`,
    'the version is not written as plain text in the first document',
  ],
  [
    'an empty document before the manifest',
    `---\n# none\n---\n${paths(OLD)}`,
    'the version is not written as plain text in the first document',
  ],
  [
    'an alias behind a path',
    `version: ${OLD}\nhosts:\n  - { name: cp1, role: controlPlane, address: &p /opt/${OLD}/kubeadm }\nbinaries:\n  kubeadm: { path: *p }\n  kubelet: { path: /opt/${OLD}/kubelet }\n`,
    'the manifest would still name v1.36.2',
  ],
])('a manifest with %s is not written', async (_title, before, message) => {
  const { error, text } = await upgrading(before);
  expect([error, text]).toEqual([expect.stringContaining(message), before]);
});

test.each<[string, string, string]>([
  ['is a page with digits', `<html>${'ab'.repeat(32)}</html>`, 'is not the SHA-256 of kubeadm'],
  ['is a longer digest', 'ab'.repeat(64), 'is not the SHA-256 of kubeadm'],
  ['is about another file', `${'ab'.repeat(32)}  kubelet`, 'is not the SHA-256 of kubeadm'],
])('a text beside the file that %s is no digest', async (_title, body, message) => {
  files.set(`/${NEW}/kubeadm`, 'kubeadm');
  files.set(`/${NEW}/kubeadm.sha256`, body);
  const { error } = await upgrading(downloads(OLD, 'cd'.repeat(32), 'ef'.repeat(32)));
  expect(error).toContain(message);
});

test('the digest of an address with a query is beside its path', async () => {
  const of = (version: string, sha: string) =>
    `version: ${version}\nhosts: [{ name: cp1, role: controlPlane }]\nbinaries:\n  kubeadm: { url: "${place}/${version}/kubeadm?token=a", sha256: ${sha} }\n  kubelet: { path: /opt/${version}/kubelet }\n`;
  files.set(`/${NEW}/kubeadm?token=a`, 'kubeadm');
  files.set(`/${NEW}/kubeadm.sha256?token=a`, `${'AB'.repeat(32)}  kubeadm`);
  const { error, text, said } = await upgrading(of(OLD, 'cd'.repeat(32)));
  expect([error, text]).toEqual(['', of(NEW, 'ab'.repeat(32))]);
  expect(said).not.toContain('sha256?token=a');
});

test('a symbolic link keeps its place, and its file keeps mode and byte order mark', async () => {
  const link = join(folder, 'link.yaml');
  const real = join(folder, 'real.yaml');
  await writeFile(real, `\uFEFF${paths(OLD)}`);
  await chmod(real, 0o666);
  await symlink('real.yaml', link);
  const { error } = await upgrading(paths(OLD), NEW, { manifest: link });
  expect([error, await readFile(real, 'utf8')]).toEqual(['', `\uFEFF${paths(NEW)}`]);
  expect((await stat(real)).mode & 0o777).toBe(0o666);
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  await rm(link);
  await rm(real);
});

test.each<[string, string, Partial<UpgradeFlags>, string]>([
  ['a version with a build', 'v1.36.3+k0s.0', {}, 'a release of Kubernetes has no build'],
  ['the present version', OLD, {}, 'already has v1.36.2, so nothing is left to write'],
  ['an older version', 'v1.36.1', {}, 'refit kubeadm apply --back'],
  ['standard input', NEW, { manifest: '-' }, '-m must name a file'],
  ['no answer', NEW, { yes: false }, 'pass --yes'],
])('%s changes nothing, and the error says what helps', async (_title, version, flags, message) => {
  const { error, text } = await upgrading(paths(OLD), version, flags);
  expect([error, text]).toEqual([expect.stringContaining(message), paths(OLD)]);
});

test.each<[string, Partial<UpgradeFlags>, string]>([
  ['-o yaml', { output: 'yaml' }, `version: "${NEW}"`],
  ['--dry-run', { dryRun: 'client' }, 'Nothing was written'],
])('%s changes nothing', async (_title, flags, shown) => {
  const { said, error, text } = await upgrading(paths(OLD), NEW, flags);
  expect([error, text, said]).toEqual(['', paths(OLD), expect.stringContaining(shown)]);
});
