/**
 * Tests the ways in which a user names the cluster and the version for `refit ready`, on a real control plane: files with
 * Plans, the manifest of a kubeadm cluster, and a Cluster of Cluster API.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import type { ReadyFinding, ReadyReport } from '../../src/ready/finding.ts';
import { openScene, type Scene, TO } from '../support/kubeadm/suite.ts';
import { defineKinds } from '../support/ready/define-kinds.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

/** The control plane may be several minor versions older than a target. */
const ANY_SERVER = ['--accept', 'versions=any control plane serves this test'];
let scene: Scene;
let folder = '';
/** The definitions of kinds that this file created. */
const defined: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refit-ready-'));
  scene = await openScene(startJavascriptServer);
  await apply(await readFile('deploy/crds/upgrade.refit.dev_upgradepolicies.yaml', 'utf8'));
});

afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  if (defined.length > 0) await kubectlAs('admin', ['delete', 'crd', ...defined]);
  await rm(folder, { recursive: true });
});

async function ask(...flags: string[]): Promise<ReadyReport> {
  const kubeconfig = await kubeconfigFor('admin');
  const words = ['ready', '--kubeconfig', kubeconfig, '-o', 'json', ...ANY_SERVER, ...flags];
  const { stdout, stderr } = await runRefit(...words);
  expect(stderr).toEqual([]);
  return JSON.parse(stdout.join('\n')) as ReadyReport;
}

async function written(name: string, ...objects: object[]): Promise<string> {
  const path = join(folder, name);
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await writeFile(path, JSON.stringify(list));
  return path;
}

const of = (findings: readonly ReadyFinding[], check: string) =>
  findings.filter((each) => each.check === check);

function k0sPlan(version: string): object {
  const payload = { 'linux-amd64': { url: `https://mirror.example.com/${version}` } };
  const everyone = { discovery: { selector: {} } };
  const targets = { controllers: everyone, workers: everyone };
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: { name: 'autopilot' },
    spec: {
      id: 'a',
      timestamp: 'now',
      commands: [{ k0supdate: { version, platforms: payload, targets } }],
    },
  };
}

function rancherPlan(version: string): object {
  return {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name: 'agents', namespace: 'system-upgrade' },
    spec: { version, nodeSelector: {}, upgrade: { image: 'rancher/k3s-upgrade' } },
  };
}

test.each([
  ['a Plan of k0s', k0sPlan('v1.37.1+k0s.0'), 'v1.37.1+k0s.0'],
  ['a Plan of Rancher', rancherPlan('v1.37.2+k3s1'), 'v1.37.2+k3s1'],
])('the version and the policies are those of the file with %s', async (_title, plan, to) => {
  const policy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'from-file' },
    spec: {
      health: { http: [{ name: 'answers', url: 'http://127.0.0.1:1/none' }] },
    },
  };
  const report = await ask('-f', await written('plan.json', plan, policy));
  expect(report.to).toBe(to);
  expect(of(report.findings, 'health')).toEqual([
    expect.objectContaining({ state: 'blocker', object: 'UpgradePolicy from-file' }),
  ]);
});

test('a manifest of kubeadm gives the version, and its hosts are asked over SSH', async () => {
  const manifest = await scene.cluster.manifest(TO, () => undefined);
  const port = String(scene.cluster.apiPort);
  const report = await ask('-m', manifest, '--api-port', port);
  expect(report.to).toBe(TO);
  // Nobody renews the Leases of these Nodes, so nothing says how their clocks are.
  const asked = of(report.findings, 'ground').filter(
    ({ message }) => !message.startsWith('its clock'),
  );
  expect(asked.map(({ state }) => state)).not.toContain('unknown');
  const other = await scene.cluster.manifest(TO, (each) => {
    const [, second] = (each as { hosts: { role: string }[] }).hosts;
    if (second !== undefined) second.role = 'worker';
  });
  const found = of((await ask('-m', other, '--api-port', port)).findings, 'ground');
  expect(found).toContainEqual(
    expect.objectContaining({
      state: 'blocker',
      message: expect.stringContaining('host cp2 has role worker') as unknown,
    }),
  );
});

test('a Cluster of Cluster API is read from both clusters', async () => {
  const kubeconfig = await kubeconfigFor('admin');
  const { signal } = new AbortController();
  using client = createClient(await loadClusterConfig({ path: kubeconfig }));
  defined.push(...(await defineKinds(client, signal)));
  const configured = (name: string, cluster: string): object => ({
    apiVersion: 'controlplane.cluster.x-k8s.io/v1beta2',
    kind: 'KubeadmControlPlane',
    metadata: {
      name,
      namespace: 'default',
      labels: { 'cluster.x-k8s.io/cluster-name': cluster },
    },
    spec: {
      kubeadmConfigSpec: {
        clusterConfiguration: {
          apiServer: { extraArgs: [{ name: 'feature-gates', value: 'SidecarContainers=true' }] },
        },
      },
    },
  });
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'blue-kubeconfig', namespace: 'default' },
    data: { value: (await readFile(kubeconfig)).toString('base64') },
  };
  const items = [configured('blue', 'blue'), configured('green', 'green'), secret];
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  try {
    const report = await ask('--cluster', 'blue', '--to', 'v1.37');
    expect(report.to).toBe('v1.37.0');
    const objects = of(report.findings, 'settings').map(({ object }) => object);
    expect(objects).toContain('KubeadmControlPlane default/blue');
    const red = ['ready', '--kubeconfig', kubeconfig, '--cluster', 'red', '--to', 'v1.37'];
    const { code, stderr } = await runRefit(...red);
    expect([code, stderr.join(' ')]).toEqual([
      1,
      expect.stringContaining('there is no Secret default/red-kubeconfig'),
    ]);
  } finally {
    await kubectlAs('admin', ['delete', 'secret', 'blue-kubeconfig', '-n', 'default']);
  }
});

test.each([
  [[], 'one of these must say what to look at'],
  [['--to', 'v1.37', '-f', 'plan.yaml'], 'one of these must say what to look at'],
  [['-m', 'cluster.yaml', '--cluster', 'blue'], 'one of these must say what to look at'],
  [['--cluster', 'blue'], '--cluster needs the new version'],
  [['--to', 'v1.37', '-n', 'default'], '-n is the namespace of a Cluster'],
])('the flags %j name no target, and the error says what would', async (flags, message) => {
  const { code, stderr } = await runRefit('ready', ...flags);
  expect([code, stderr.join(' ')]).toEqual([2, expect.stringContaining(message)]);
});

test('a file without a version says what to do', async () => {
  const path = await written('channel.json', {
    ...rancherPlan(''),
    spec: {
      channel: 'https://channels.example.com/stable',
      nodeSelector: {},
      upgrade: { image: 'rancher/k3s-upgrade' },
    },
  });
  const { code, stderr } = await runRefit('ready', '-f', path);
  expect([code, stderr.join(' ')]).toEqual([
    2,
    expect.stringContaining(
      'the plan names no version; write the version with --to in place of -f',
    ),
  ]);
});
