/**
 * Tests the features of kubeadm itself that an upgrade uses: its plan and diff, the configuration of the cluster, and
 * an UpgradeConfiguration.
 */
import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { PLACE } from '../../src/dialects/kubeadm/plan/plan-object.ts';
import { configMaps, events, nodes } from '../../src/kube/resources.ts';
import { createAuthority, issueClient, validFrom } from '../../tools/controlplane/certs.ts';
import { openScene, type Run, type Scene, TO, versions } from '../support/kubeadm/suite.ts';

const KUBELETS = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  maxPods: 42,
};
const PLAN = `upgrade plan ${TO} -o json --ignore-preflight-errors=all`;
const FLAG = '    - --audit-log-maxage=7\n';
let scene: Scene;
let config = '';

const inRoot = (name: string, path: string): string => join(scene.cluster.host(name).root, path);

/** Events that other files have left on the control plane, by their uid. */
const earlier = new Set<string | undefined>();

beforeAll(async () => {
  scene = await openScene(startJavascriptServer, { hosts: 1 });
  const { items } = await scene.cluster.client.list(events);
  for (const { metadata } of items) earlier.add(metadata.uid);
  config = inRoot('cp1', 'etc/kubernetes/upgrade.yaml');
  const upgrade = { apiVersion: 'kubeadm.k8s.io/v1beta4', kind: 'UpgradeConfiguration' };
  await writeFile(config, stringify({ ...upgrade, timeouts: { upgradeManifests: '9m0s' } }));
});
afterAll(async () => await scene[Symbol.asyncDispose]());

async function run(command: string, kubeadm: object): Promise<Run> {
  const path = await scene.cluster.manifest(TO, (manifest) => Object.assign(manifest, { kubeadm }));
  const started = scene.refit(command, ...(command === 'apply' ? ['--yes'] : []), '-m', path);
  await started.ended;
  return started;
}

test('a plan shows the lines that an upgrade removes from manifests, and asks for patches if none are set', async () => {
  await appendFile(inRoot('cp1', 'etc/kubernetes/manifests/kube-apiserver.yaml'), FLAG);
  const question =
    'The upgrade removes lines from manifests. If patches added these lines, set kubeadm.patches in the manifest; otherwise they are lost.\n';
  const without = await run('plan', {});
  expect([await without.ended, without.stderr]).toEqual([0, '']);
  expect(without.stdout).toMatch(
    /kubeadm upgrade diff on cp1:\n--- .*\n- {4}- --audit-log-maxage=7\n/,
  );
  expect(without.stdout).toContain(question);
  const { stdout } = await run('plan', { patches: inRoot('cp1', 'etc/kubernetes') });
  expect(stdout).toContain('kubeadm upgrade diff on cp1, without the patches:\n');
  expect(stdout).not.toContain(question);
});

test("an address that leads to another Node's host is refused, before anything is done there", async () => {
  const life = validFrom(Date.now());
  const file = inRoot('cp1', 'var/lib/kubelet/pki/kubelet-client-current.pem');
  await mkdir(dirname(file), { recursive: true });
  const kubeconfig = inRoot('cp1', 'etc/kubernetes/kubelet.conf');
  await writeFile(
    kubeconfig,
    `contexts:
- context: { cluster: c }
  name: other
- context:
    user: kubelet
  name: own
current-context: own
users:
- name: kubelet
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
`,
  );
  const subject = { commonName: 'kubernetes' };
  const authority = { ...createAuthority(subject, life), subject };
  await writeFile(
    file,
    issueClient(authority, { commonName: 'system:node:cp2', organization: 'system:nodes' }, life)
      .certificate,
  );
  const refused = await run('plan', {});
  const line =
    'REFIT_REFUSED: F2: host cp1: its address belongs to the host of Node cp2, according to the certificate of the kubelet there';
  expect([await refused.ended, refused.stderr]).toEqual([1, expect.stringContaining(line)]);
  await rm(file);
  await rm(kubeconfig);
});

test('a report that cannot be written is told before anything is asked', async () => {
  const path = await scene.cluster.manifest(TO, (manifest) => manifest);
  const started = scene.refit('apply', '--yes', '-m', path, '--report', '/nosuch/report.md');
  expect([await started.ended, started.stderr]).toEqual([
    2,
    expect.stringContaining('cannot write /nosuch/report.md'),
  ]);
  expect(await logOf(scene.cluster.host('cp1'), 'kubeadm')).toEqual([]);
});

test('a ConfigMap of kubeadm that is no YAML is named, with its field', async () => {
  const { namespace } = PLACE;
  const { data } = await scene.cluster.client.get(configMaps, 'kubeadm-config', { namespace });
  const write = async (text = '') =>
    await scene.cluster.client.patch(
      configMaps,
      'kubeadm-config',
      { data: { ClusterConfiguration: text } },
      { namespace, type: 'merge' },
    );
  onTestFinished(async () => void (await write(data?.['ClusterConfiguration'])));
  await write('a: [');
  const refused = await run('plan', {});
  const line = `REFIT_REFUSED: ConfigMap ${namespace}/kubeadm-config: data.ClusterConfiguration: `;
  expect([await refused.ended, refused.stderr]).toEqual([1, expect.stringContaining(line)]);
});

test('a run changes nothing if kubeadm upgrade plan fails', async () => {
  await writeFile(
    inRoot('cp1', 'plan-fails'),
    'klog noise\nthe ConfigMap kube-proxy cannot be read',
  );
  const failed = await run('apply', {});
  const line =
    /^REFIT_REFUSED: cp1: not ready, nothing was changed: .*ConfigMap kube-proxy cannot be read \(/;
  expect([await failed.ended, failed.stderr]).toEqual([1, expect.stringMatching(line)]);
  const { items } = await scene.cluster.client.list(nodes);
  expect(items.filter(({ spec }) => spec?.unschedulable)).toEqual([]);
  expect(await logOf(scene.cluster.host('cp1'), 'kubeadm')).toEqual([]);
  await rm(inRoot('cp1', 'plan-fails'));
});

test('before its first change, the staged kubeadm reports configuration that a person must convert', async () => {
  await writeFile(inRoot('cp1', 'manual-upgrade'), 'kubeproxy.config.k8s.io');
  const kubelet = stringify(KUBELETS);
  const { namespace } = PLACE;
  await scene.cluster.client.patch(
    configMaps,
    'kubelet-config',
    { data: { kubelet } },
    { namespace, type: 'merge' },
  );
  const done = await run('apply', { config });
  expect([await done.ended, done.stderr]).toEqual([0, '']);
  expect(done.stdout).toContain(
    'warning kubeadm: it cannot read the kubeproxy.config.k8s.io in the cluster: convert',
  );
  const asked = await logOf(scene.cluster.host('cp1'), 'kubeadm-preflight');
  expect(asked).toContain(PLAN);
  expect(await logOf(scene.cluster.host('w1'), 'kubeadm-preflight')).not.toContain(PLAN);
  expect(await versions(scene)).toEqual(['cp1', 'w1'].map((name) => [name, TO]));
});

test('after the upgrade each host has the kubelet settings of the ConfigMap kubelet-config', async () => {
  for (const name of ['cp1', 'w1'])
    expect([name, await readFile(inRoot(name, 'var/lib/kubelet/config.yaml'), 'utf8')]).toEqual([
      name,
      expect.stringContaining('\nmaxPods: 42\n'),
    ]);
});

test('Refit passes an UpgradeConfiguration to the preflight and to the upgrade of kubeadm', async () => {
  const ofPreflight = await logOf(scene.cluster.host('cp1'), 'kubeadm-preflight');
  expect(ofPreflight).toContain(`upgrade apply phase preflight ${TO} --yes --config=${config}`);
  for (const [name, verb] of [
    ['cp1', `upgrade apply --yes ${TO}`],
    ['w1', 'upgrade node'],
  ] as const)
    expect([name, await logOf(scene.cluster.host(name), 'kubeadm')]).toEqual([
      name,
      [`${verb} --config=${config}`],
    ]);
});

test('when a run ends, the Completed Events of every host and of the plan are in the cluster', async () => {
  const { items } = await scene.cluster.client.list(events);
  const own = items.filter(
    ({ reason, metadata }) => reason === 'Completed' && !earlier.has(metadata.uid),
  );
  const told = own.map(({ involvedObject: { name = '' } }) => name);
  expect(told.toSorted()).toEqual(['cp1', PLACE.name, 'w1']);
});
