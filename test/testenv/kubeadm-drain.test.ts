/**
 * Tests that nodes are drained before their kubelets are upgraded. The test upgrades to a minor version over SSH, with
 * real pods and a real PodDisruptionBudget.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { CONTAINERD, logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { reportOn } from '../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { cordonOwner, PENDING_TAINT, pendingOwner } from '../../src/drain/cordon-marks.ts';
import { type Node, nodes, type Pod, pods, signingRequests } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import { removeRequests, requestFromHosts } from '../support/kubeadm/serving-requests.ts';
import { FROM, openScene, type Run, type Scene } from '../support/kubeadm/suite.ts';
import { apply, kubectlAs } from './control-plane.ts';
import { Workloads } from './drain-workloads.ts';

const MINOR = 'v1.37.0';
const PATIENCE = { timeout: 150_000, interval: 200 };
const NAMESPACE = 'default';
const WORKLOADS = new Workloads(NAMESPACE, '');
const POLICY = 'kubeadm-drains';
const HELD =
  /w1 waits \(DrainBlocked\): 1 pod is left on node w1 \(default\/web-\S+\): PodDisruptionBudget default\/web blocks default\/web-\S+: it needs 1 healthy pods and has 1 currently/;
let scene: Scene;
let manifest = '';
let last: Run;
/** The names of the nodes with the new version, in the order in which their Nodes reported it. */
const kubelets: string[] = [];
/** The versions of the API servers when the first kubelet of the new version reported. */
let apiServers: string[] = [];
const stop = new AbortController();

beforeAll(async () => {
  for (const file of ['upgrade.refit.dev_upgradepolicies.yaml'])
    await apply(await readFile(join('deploy/crds', file), 'utf8'));
  scene = await openScene(startJavascriptServer, { played: true, offers: [MINOR] });
  await requestFromHosts(scene.cluster.hosts);
  const runtime = ['containerd', 'containerd-shim-runc-v2'].map((name) => [
    name,
    { path: `/opt/containerd/${name}` },
  ]);
  const containerd = { version: CONTAINERD, binaries: Object.fromEntries(runtime) as object };
  const more = { containerd, approveServingCertificates: true };
  manifest = await scene.cluster.manifest(MINOR, (each) => Object.assign(each, more));
  await watchKubelets();
});

afterEach(
  async () =>
    void (await kubectlAs('admin', ['delete', 'upgradepolicy', POLICY, '--ignore-not-found'])),
);

afterAll(async () => {
  stop.abort();
  // Deletes the pods first, because nothing ends them after their Nodes are deleted.
  const all = ['deployment,poddisruptionbudget', '--all', '-n', NAMESPACE];
  await kubectlAs('admin', ['delete', ...all, '--cascade=foreground']);
  await removeRequests();
  await scene[Symbol.asyncDispose]();
});

async function watchKubelets(): Promise<void> {
  const informer = createInformer(scene.cluster.client, nodes);
  informer.addHandler({
    updated({ metadata: { name }, status }) {
      if (status?.nodeInfo?.kubeletVersion !== MINOR || kubelets.includes(name)) return;
      kubelets.push(name);
      if (kubelets.length === 1)
        void apiServerVersions().then((found) => {
          apiServers = found;
        });
    },
  });
  void informer.run(stop.signal);
  await informer.whenSynced(stop.signal);
}

async function apiServerVersions(): Promise<string[]> {
  const texts = ['cp1', 'cp2'].map(async (name) => {
    const path = join(
      scene.cluster.host(name).root,
      'etc/kubernetes/manifests/kube-apiserver.yaml',
    );
    return /kube-apiserver:(\S+)/.exec(await readFile(path, 'utf8'))?.[1] ?? '';
  });
  return await Promise.all(texts);
}

function start(): Run {
  return scene.refit('apply', '--yes', '-m', manifest, '--lease-duration', '3s');
}

async function node(name: string): Promise<Node> {
  return await scene.cluster.client.get(nodes, name);
}

async function setCordon(name: string, unschedulable: boolean | null): Promise<void> {
  await scene.cluster.client.patch(nodes, name, { spec: { unschedulable } }, { type: 'merge' });
}

async function podsOn(name: string): Promise<Pod[]> {
  const { items } = await scene.cluster.client.list(pods, {
    fieldSelector: `spec.nodeName=${name}`,
  });
  // Static pods remain on the node, so they do not count.
  return items.filter(
    ({ metadata, status }) => status?.phase === 'Running' && !metadata.labels?.['tier'],
  );
}

async function tells(run: Run, pattern: RegExp): Promise<void> {
  const ended = run.ended.then((code) => {
    throw new Error(`it ended with ${code}: ${run.stdout}${run.stderr}`);
  });
  await Promise.race([vi.waitFor(() => expect(run.stdout).toMatch(pattern), PATIENCE), ended]);
}

test('a plan warns of a PodDisruptionBudget that blocks a drain and of a webhook without a ready endpoint', async () => {
  for (const name of ['cp1', 'cp2', 'w2']) await setCordon(name, true);
  const spec = { nodeSelector: { 'kubernetes.io/os': 'linux' } };
  await apply(JSON.stringify(WORKLOADS.of('Deployment', 'web', { replicas: 2 }, { spec })));
  await apply(JSON.stringify(WORKLOADS.budget('web', 'web', { minAvailable: 2 })));
  await vi.waitFor(async () => expect(await podsOn('w1')).toHaveLength(2), PATIENCE);
  // The match condition of the webhook is never true, so the API server never calls it.
  const webhook = {
    name: 'silent.example.com',
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    clientConfig: { service: { namespace: NAMESPACE, name: 'silent' } },
    matchConditions: [{ name: 'never', expression: 'false' }],
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
  };
  const kind = 'ValidatingWebhookConfiguration';
  const metadata = { name: 'silent' };
  await apply(
    JSON.stringify({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata,
      webhooks: [webhook],
    }),
  );
  const run = scene.refit('plan', '-m', manifest);
  expect([await run.ended, run.stderr]).toEqual([0, '']);
  expect(run.stdout).toContain(
    `cp1   control plane  ${FROM} → ${MINOR}  kubelet, once every API server has the version`,
  );
  expect(run.stdout).toContain(
    `On hosts with another version of containerd, ${CONTAINERD} is installed before the kubelet; no container`,
  );
  expect(run.stdout).toContain(
    'Requests of kubelets for serving certificates are approved, if manifest and host',
  );
  expect(run.stdout).toMatch(
    /warning drain: the drain of w1 may not end: PodDisruptionBudget default\/web blocks .*for at most 1 h \(`deadlines.drain`\)/,
  );
  expect(run.stdout).toContain(
    'warning webhook: ValidatingWebhookConfiguration silent: there is no Service default/silent for webhook silent',
  );
  await kubectlAs('admin', ['delete', kind, 'silent']);
  // A pod that is blocked only temporarily is treated differently.
  await apply(JSON.stringify(WORKLOADS.budget('web', 'web', { minAvailable: 1 })));
});

test('a host whose drain passes its deadline has failed, is uncordoned, and kubeadm did not run on it', async () => {
  const spec = { plans: [{ dialect: 'kubeadm' }], deadlines: { drain: '20s' } };
  const metadata = { name: POLICY };
  await apply(
    JSON.stringify({
      apiVersion: 'upgrade.refit.dev/v1alpha1',
      kind: 'UpgradePolicy',
      metadata,
      spec,
    }),
  );
  const run = start();
  expect(await run.ended).toBe(1);
  expect(run.stdout).toMatch(HELD);
  expect(run.stdout).toMatch(
    /has failed: w1 was not drained within 20 s: 1 pod is left on node w1 \(default\/web-\S+\): PodDisruptionBudget .*\n$/,
  );
  expect(await logOf(scene.cluster.host('w1'), 'kubeadm')).toEqual([]);
  expect(await logOf(scene.cluster.host('w1'), 'kubelet')).toEqual([]);
  const { spec: left, metadata: told } = await node('w1');
  expect([left?.unschedulable, cordonOwner({ metadata: told })]).toEqual([undefined, undefined]);
  expect(
    (await node('w2')).spec?.taints?.some(({ key }) => key.startsWith('upgrade.refit.dev/')) ??
      false,
  ).toBe(false);
  await vi.waitFor(async () => expect(await podsOn('w1')).toHaveLength(2), PATIENCE);
});

test('kubelets of the control plane are upgraded after every API server and before those of workers', () => {
  expect(kubelets).toEqual(['cp1', 'cp2']);
  expect(apiServers).toEqual([MINOR, MINOR]);
});

test('a run that is killed while a budget holds a pod is followed by one that waits for the same', async () => {
  // The taint that a killed run leaves when another run's request has replaced the request of the killed run.
  const left = [{ ...PENDING_TAINT, value: 'ConfigMap.gone' }];
  await scene.cluster.client.patch(nodes, 'w1', { spec: { taints: left } }, { type: 'merge' });
  const first = start();
  await tells(first, HELD);
  // The Node shows the report to users who may read neither pods nor PodDisruptionBudgets.
  await vi.waitFor(
    async () => expect(reportOn(await node('w1'))?.message).toContain('default/web blocks'),
    PATIENCE,
  );
  expect(cordonOwner(await node('w1'))).toBeDefined();
  first.child.kill('SIGKILL');
  await first.ended;
  last = start();
  await tells(last, HELD);
  expect(await logOf(scene.cluster.host('w1'), 'kubelet')).toEqual([]);
  expect(await podsOn('w1')).toHaveLength(1);
  await setCordon('cp1', null);
  // A busy API server may answer late. Then the log contains a warning.
  expect([await last.ended, last.stderr]).toEqual([
    0,
    expect.not.stringContaining('"level":"error"'),
  ]);
  expect(await podsOn('w1')).toEqual([]);
  expect(await podsOn('cp1')).toHaveLength(2);
});

test('every host has the version; kubeadm ran once on each, and each kubelet was restarted once', async () => {
  expect(kubelets).toEqual(['cp1', 'cp2', 'w1', 'w2']);
  for (const host of scene.cluster.hosts) {
    const verb = host.name === 'cp1' ? `upgrade apply --yes ${MINOR}` : 'upgrade node';
    expect([host.name, await logOf(host, 'kubeadm')]).toEqual([host.name, [verb]]);
    expect([host.name, await logOf(host, 'kubelet')]).toEqual([host.name, [`started ${MINOR}`]]);
  }
});

test('containerd is restarted once on each host, before its kubelet, and its Node says so', async () => {
  for (const host of scene.cluster.hosts) {
    const restarts = (await logOf(host, 'systemctl')).filter((line) => line.startsWith('restart'));
    expect([host.name, restarts]).toEqual([host.name, ['restart containerd', 'restart kubelet']]);
    const { status } = await node(host.name);
    expect(status?.nodeInfo?.containerRuntimeVersion).toBe(`containerd://${CONTAINERD.slice(1)}`);
  }
});

test('what the kubelet of a host asks for to serve with is approved, and nothing else', async () => {
  const of = async (name: string) =>
    (await scene.cluster.client.get(signingRequests, name)).status?.conditions;
  expect(await of('of-w1')).toMatchObject([{ type: 'Approved', reason: 'Refit' }]);
  expect(await of('of-w9')).toBeUndefined();
  const warnings = last.stderr.split('\n').filter((line) => line.includes('serving certificate'));
  expect(warnings).toEqual([expect.stringContaining('of-w9')]);
});

test('after the run, cordons of other users stay and the cordons of Refit are removed', async () => {
  const found = await Promise.all(['cp1', 'cp2', 'w1', 'w2'].map(node));
  expect(found.map(({ metadata, spec }) => [metadata.name, spec?.unschedulable ?? false])).toEqual([
    ['cp1', false],
    ['cp2', true],
    ['w1', false],
    ['w2', true],
  ]);
  expect(found.map(cordonOwner)).toEqual([undefined, undefined, undefined, undefined]);
  expect(found.map(pendingOwner)).toEqual([undefined, undefined, undefined, undefined]);
});
