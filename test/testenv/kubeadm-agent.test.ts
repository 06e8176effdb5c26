/**
 * Tests the agent of kubeadm hosts. Real agent processes run for stand-in hosts, and the leader is the real extension
 * for Cluster API.
 */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { prepareExtension } from '../../sandbox/cluster/hook-extension.ts';
import { REFIT } from '../../sandbox/refit.ts';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { recordOf, updateOn, withRequest } from '../../src/dialects/capi/plan/machine-update.ts';
import { configMaps, kubeletVersionOf, nodes } from '../../src/kube/resources.ts';
import { agentOf, procedureOf } from '../../src/signal/agent-presence.ts';
import { decodeReport, decodeSignal } from '../../src/signal/annotations.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { type AgentProcess, startAgentProcess } from '../agent/agent-process.ts';
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts';
import { holdUp } from '../support/kubeadm/hooks.ts';
import { FROM, openScene, type Run, type Scene, TO } from '../support/kubeadm/suite.ts';
import { testUnless } from '../support/left-out.ts';
import { apply, controlPlane, kubeconfigFor } from './control-plane.ts';
import { kubeconfigVia } from './kubeconfig-variants.ts';
import { WHY_KUBELETS_TOO_NEW } from './since.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const CONFIG = { namespace: 'kube-system', name: 'kubeadm-config' };
/** The Role and RoleBinding that kubeadm creates for its ConfigMap. */
const ROLE = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: kubeadm:nodes-kubeadm-config, namespace: kube-system }
rules: [{ apiGroups: [""], resources: [configmaps], resourceNames: [kubeadm-config], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: kubeadm:nodes-kubeadm-config, namespace: kube-system }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: kubeadm:nodes-kubeadm-config }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:nodes }]
`;

let scene: Scene;
let leader: Run;
let proxy: TcpProxy;
let mirror = '';
/** Every download waits for this promise. */
let mayServe = Promise.resolve();
/** The hash of the list of binaries. */
let sha256 = '';
const agents: AgentProcess[] = [];
const server = createServer(
  (request, response) => void serve(request.url ?? '').then((body) => response.end(body)),
);

const sha = (body: Buffer | string): string => createHash('sha256').update(body).digest('hex');

async function serve(path: string): Promise<Buffer | string> {
  await mayServe;
  const name = path.slice(1);
  const file = async (each: string) =>
    await readFile(join(scene.cluster.host('w1').root, 'opt/kubernetes', TO, each));
  if (name === 'kubeadm' || name === 'kubelet') return await file(name);
  const kubeadm = sha(await file('kubeadm'));
  const kubelet = sha(await file('kubelet'));
  return `${kubeadm}  kubeadm\n${name === 'WRONG' ? kubeadm : kubelet}  kubelet\n`;
}

beforeAll(async () => {
  scene = await openScene(startJavascriptServer);
  for (const each of [
    ROLE,
    await readFile('deploy/crds/upgrade.refit.dev_upgradepolicies.yaml', 'utf8'),
  ])
    await apply(each);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  sha256 = sha(await serve('/LIST'));
  const kubeconfig = await kubeconfigFor('capi');
  const unused = {
    startLeading: async () => await Promise.reject(new Error('unused')),
    downloads: { url: mirror },
  };
  const directory = join(scene.cluster.host('w1').root, '..');
  const extension = await prepareExtension({ cluster: unused, directory, kubeconfig });
  const own = ['--api-port', String(scene.cluster.apiPort), '--lease-duration', '3s'];
  leader = scene.refitAs(kubeconfig, ...extension.commandLine, ...own);
  const { hostname: host, port } = new URL(controlPlane().url);
  proxy = await startTcpProxy({ target: { host, port: Number(port) } });
});

afterEach(async () => {
  await Promise.all(agents.splice(0).map(async (agent) => await agent.stop('SIGKILL')));
});

afterAll(async () => {
  leader.child.kill('SIGKILL');
  await leader.ended;
  await proxy.stop();
  server.close();
  await scene[Symbol.asyncDispose]();
});

async function startAgent(name: string, ...flags: string[]): Promise<AgentProcess> {
  const { root } = scene.cluster.host(name);
  const kubeconfig = await kubeconfigVia(
    join(root, '..'),
    { node: name },
    `https://127.0.0.1:${proxy.port}`,
  );
  const state = [
    '--state-dir',
    join(root, 'var/lib/refit-agent'),
    '--run-dir',
    join(root, 'run/refit'),
  ];
  const own = ['--procedure', 'kubeadm', '--name', name, '--config', join(root, 'none.yaml')];
  const args = [...own, '--kubeconfig', kubeconfig, ...state, ...flags];
  const environment = { REFIT_ROOT: root, PATH: `${join(root, 'usr/bin')}:${process.env['PATH']}` };
  const agent = startAgentProcess([process.execPath, REFIT], args, environment);
  agents.push(agent);
  return agent;
}

const nodeOf = async (name: string) => await scene.cluster.client.get(nodes, name);

/** Requests an update of the host, as UpdateMachine does. */
async function request(name: string, list = 'LIST', hash = sha256): Promise<void> {
  const { cluster } = scene;
  const role = cluster.host(name).role === 'controlPlane' ? 'controller' : 'worker';
  const update = {
    uid: randomUUID(),
    machine: `default/${name}`,
    version: TO,
    role,
    requested: rfc3339(systemClock.now()),
    platform: 'linux-amd64',
    url: `${mirror}/${list}`,
    sha256: hash,
    procedure: 'kubeadmupdate',
  } as const;
  const annotated = withRequest(await nodeOf(name), update);
  const { annotations, labels } = annotated.metadata;
  await cluster.client.patch(nodes, name, { metadata: { annotations, labels } }, { type: 'merge' });
}

/** Waits until the update of the host has ended. Resolves with its phase, and with the reason if it failed. */
async function ended(name: string): Promise<[phase: string | undefined, reason: string]> {
  return await vi.waitFor(async () => {
    const node = await nodeOf(name);
    const update = updateOn(node);
    const record = update && recordOf(node, update);
    expect([record?.phase, leader.child.exitCode]).toEqual([
      expect.stringMatching(/done|failed/),
      null,
    ]);
    return [record?.phase, record?.reason?.message ?? ''];
  }, PATIENCE);
}

async function hasLogged(agent: AgentProcess, what: string): Promise<void> {
  await vi.waitFor(() => expect(agent.log.join('\n')).toContain(what), PATIENCE);
}

/** Writes this version to kubeadm-config, as Cluster API does before it updates the first control-plane node. */
async function configure(version: string): Promise<void> {
  const { client } = scene.cluster;
  const { data } = await client.get(configMaps, CONFIG.name, { namespace: CONFIG.namespace });
  const whole = parse(data?.['ClusterConfiguration'] ?? '') as object;
  const patch = {
    data: { ClusterConfiguration: stringify({ ...whole, kubernetesVersion: version }) },
  };
  await client.patch(configMaps, CONFIG.name, patch, {
    namespace: CONFIG.namespace,
    type: 'merge',
  });
}

test('an agent says what it is for, and refuses a host without kubeadm', async () => {
  const agent = await startAgent('w1');
  await vi.waitFor(async () => expect(procedureOf(await nodeOf('w1'))).toBe('kubeadm'), PATIENCE);
  expect(agent.log.join('\n')).not.toContain('k0s');
  expect(agentOf(await nodeOf('w1')).ours).toBe(true);
  const { root } = scene.cluster.host('w2');
  const state = ['--state-dir', join(root, 'var/lib/other'), '--run-dir', join(root, 'run/other')];
  const where = [...state, '--kubeconfig', await kubeconfigFor({ node: 'w2' })];
  const args = ['--procedure', 'kubeadm', '--name', 'w2', ...where];
  const lost = startAgentProcess([process.execPath, REFIT], args, { PATH: '/usr/bin:/bin' });
  expect(await lost.exited).toBe(1);
  expect(lost.log.join('\n')).toContain(
    'REFIT_AGENT: no kubeadm and kubelet in PATH (/usr/bin:/bin)',
  );
});

testUnless(WHY_KUBELETS_TOO_NEW)(
  'a worker before the control plane, a list with another hash, and one whose file has another: nothing is touched',
  async () => {
    await startAgent('w1');
    await request('w1');
    expect(await ended('w1')).toEqual([
      'failed',
      expect.stringContaining(`kubeadm-config has version ${FROM}`),
    ]);
    await configure(TO);
    await request('w1', 'WRONG');
    expect((await ended('w1'))[1]).toMatch(
      /FailedDownload: sha256 of the download is \w+, wanted \w+/,
    );
    await request('w1', 'WRONG', sha(await serve('/WRONG')));
    expect((await ended('w1'))[1]).toMatch(
      /FailedDownload: sha256 of the download is \w+, wanted \w+/,
    );
    expect(await logOf(scene.cluster.host('w1'), 'kubelet')).toEqual([]);
    expect((await nodeOf('w1')).spec?.unschedulable ?? false).toBe(false);
  },
);

test('rules of the agent hold for every file of the list', async () => {
  await startAgent('w2', '--allowed-hosts', 'mirror.example');
  await request('w2');
  expect((await ended('w2'))[1]).toContain('this agent downloads nothing from 127.0.0.1');
});

test('a control-plane host is updated although its agent is killed and its API server is down during kubeadm', async () => {
  const host = scene.cluster.host('cp1');
  await configure(TO);
  const release = await holdUp(host, 'kubeadm');
  const first = await startAgent('cp1');
  await request('cp1');
  await hasLogged(first, 'kubeadm starts');
  await first.stop('SIGKILL');
  proxy.partition();
  const second = await startAgent('cp1');
  await hasLogged(second, 'resuming');
  await release();
  const { root } = host;
  const kubelet = async () => await readFile(join(root, 'usr/bin/kubelet'), 'utf8');
  await vi.waitFor(async () => expect(await kubelet()).toContain(`Kubernetes ${TO}`), PATIENCE);
  proxy.heal();
  expect(await ended('cp1')).toEqual(['done', '']);
  const node = await nodeOf('cp1');
  const signal = decodeSignal(node.metadata.annotations);
  expect([kubeletVersionOf(node), node.spec?.unschedulable ?? false]).toEqual([TO, false]);
  expect(decodeReport(node.metadata.annotations, signal?.created ?? '')?.from).toBe(FROM);
  expect(await logOf(host, 'kubeadm')).toEqual(['upgrade node']);
});

testUnless(WHY_KUBELETS_TOO_NEW)(
  'a worker completes its update although its agent is killed in each step',
  async () => {
    const host = scene.cluster.host('w1');
    await request('w1');
    // Each agent is blocked right after the moment at which the test kills it, so that it makes no further progress
    // before that.
    const killedAt = async (moment: string): Promise<void> => {
      const agent = await startAgent('w1');
      await hasLogged(agent, moment);
      await agent.stop('SIGKILL');
    };
    const download = Promise.withResolvers<void>();
    mayServe = download.promise;
    const releaseKubeadm = await holdUp(host, 'kubeadm');
    await killedAt('"step":"stage-upgrade"');
    download.resolve();
    await killedAt('"status":"Cordoning"');
    await killedAt('kubeadm starts');
    const releaseKubelet = await holdUp(host, 'kubelet');
    await releaseKubeadm();
    await killedAt('replacing the kubelet');
    await releaseKubelet();
    await startAgent('w1');
    expect(await ended('w1')).toEqual(['done', '']);
    expect([await logOf(host, 'kubeadm'), await logOf(host, 'kubelet')]).toEqual([
      ['upgrade node'],
      [`started ${TO}`],
    ]);
  },
);
