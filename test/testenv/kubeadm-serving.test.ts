/**
 * Tests that kubelets get serving certificates: their requests are approved with the documented rights, and the real
 * cluster signs them.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { approveServing } from '../../src/dialects/kubeadm/plan/serving-certificates.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { configMaps, nodes, signingRequests } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { jsonLogger } from '../../src/util/log.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { APPROVAL_RIGHTS, requestServing } from '../support/kubeadm/serving-requests.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';

const NODE = 'serving-w1';
const CONFIG = { name: 'kubeadm-config', namespace: 'kube-system' };
const MANIFEST = `{version: v1.36.3, approveServingCertificates: true,
  hosts: [{name: serving-cp1, role: controlPlane}, {name: ${NODE}, role: worker}],
  binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`;
/**
 * Addresses of the control plane that Node w1 reports for a while. The keys name the source from which Refit knows each
 * address.
 */
const CONTROL_PLANE = { endpoint: '10.0.0.30', name: '10.0.0.31', kubeconfig: 'fd00::32' };
let admin: KubeClient;
let client: KubeClient;

beforeAll(async () => {
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('kubeadm') }), {
    userAgent: 'refit-test',
  });
  await apply(await readFile(APPROVAL_RIGHTS, 'utf8'));
  const { status } = simulatedNode(NODE);
  const addresses = [
    { type: 'Hostname', address: NODE },
    ...['10.0.0.21', ...Object.values(CONTROL_PLANE)].map((address) => ({
      type: 'InternalIP',
      address,
    })),
  ];
  await admin.create(nodes, { metadata: { name: NODE }, status: { ...status, addresses } });
  const configuration = {
    controlPlaneEndpoint: 'vip.example.com:6443',
    apiServer: { certSANs: [CONTROL_PLANE.name] },
    networking: { serviceSubnet: '10.96.0.0/12,fd00:96::/108' },
  };
  const data = { ClusterConfiguration: JSON.stringify(configuration) };
  await admin.create(configMaps, { metadata: CONFIG, data }, CONFIG);
});
afterAll(async () => {
  await kubectlAs('admin', ['delete', '-f', APPROVAL_RIGHTS]);
  await kubectlAs('admin', ['delete', 'csr', '--all']);
  await admin.delete(nodes, NODE);
  await admin.delete(configMaps, CONFIG.name, CONFIG);
  for (const each of [admin, client]) each.close();
});

function approvals() {
  const lines: string[] = [];
  const shown = ['10.0.0.21', '10.96.0.1', ...Object.values(CONTROL_PLANE)]
    .map((each) => `address=${each}\n`)
    .join('');
  const shells = { run: async () => await Promise.resolve({ code: 0, stdout: shown, stderr: '' }) };
  const log = jsonLogger(
    (line) => void lines.push(line),
    () => 0,
    'warn',
  );
  const manifest = parseManifest(MANIFEST, 'm.yaml');
  const abort = new AbortController().signal;
  const server = `https://[${CONTROL_PLANE.kubeconfig}]:6443`;
  const addressesOf = async (names: readonly string[]) =>
    await Promise.resolve(
      names.map((name) => (name === 'vip.example.com' ? CONTROL_PLANE.endpoint : name)),
    );
  const approve = approveServing({
    server,
    addressesOf,
    manifest,
    shells,
    client,
    clock: systemClock,
    log,
    abort,
  });
  const [host] = manifest.hosts.filter(({ name }) => name === NODE);
  if (!host) throw new Error('no host');
  return { approve: async () => await approve([host]), lines };
}

test('valid requests for serving certificates are approved and signed; others stay pending and are named once', async () => {
  await requestServing('right', NODE, `DNS:${NODE},IP:10.0.0.21`);
  await requestServing('wrong', NODE, `DNS:${NODE},IP:10.96.0.1`);
  await requestServing('foreign', 'serving-w9', 'DNS:serving-w9');
  const { approve, lines } = approvals();
  await approve();
  await approve();
  const certificate = await vi.waitFor(
    async () => {
      const { status } = await admin.get(signingRequests, 'right');
      return new X509Certificate(Buffer.from(status?.certificate ?? '', 'base64'));
    },
    { timeout: 60_000, interval: 250 },
  );
  expect(certificate.subjectAltName).toBe(`DNS:${NODE}, IP Address:10.0.0.21`);
  const { items } = await admin.list(signingRequests);
  const left = items
    .filter(({ status }) => status?.conditions === undefined)
    .map(({ metadata }) => metadata.name);
  expect(left).toEqual(['foreign', 'wrong']);
  const problems = lines.map((line) => {
    const { request: of, why } = JSON.parse(line) as Record<string, string>;
    return `${of}: ${why}`;
  });
  expect(problems).toEqual([
    'foreign: the Node that made it is not a host of this run',
    'wrong: the status of its Node lacks 10.96.0.1',
  ]);
});

test('no address of the control plane is approved, by whatever it is known', async () => {
  for (const [from, address] of Object.entries(CONTROL_PLANE))
    await requestServing(`as-${from}`, NODE, `DNS:${NODE},IP:${address}`);
  const { approve, lines } = approvals();
  await approve();
  const problems = lines.flatMap(
    (line) => (JSON.parse(line) as Record<string, string>)['why'] ?? [],
  );
  for (const address of Object.values(CONTROL_PLANE))
    expect(problems).toContain(`${address} is an address of the control plane`);
});

test('without the right to approve, a warning says so and nothing fails', async () => {
  await kubectlAs('admin', ['delete', '-f', APPROVAL_RIGHTS]);
  const { approve, lines } = approvals();
  await approve();
  expect(lines).toEqual([
    expect.stringMatching(/requests for serving certificates stay pending.*forbidden/),
  ]);
});
