/** Tests `refit upgrade` with the rights of users on a real control plane. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const NAME = 'upgrade-w1';
const NEW = 'v1.36.9+k0s.0';
const server = createServer((request, response) => {
  const isPublished = request.url === `/${NEW}/k0s-${NEW}-amd64`;
  response.writeHead(isPublished ? 200 : 404).end('k0s');
});
let from = '';

beforeAll(async () => {
  await installKinds();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  from = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = simulatedNode(NAME);
  await apply(JSON.stringify(node));
  const status = { nodeInfo: { ...NODE_INFO, kubeletVersion: 'v1.36.8+k0s' } };
  const patch = ['patch', 'node', NAME, '--subresource=status', '--type=merge'];
  await kubectlAs('admin', [...patch, '-p', JSON.stringify({ status })]);
});

const NODE_INFO = Object.fromEntries(
  [
    'architecture',
    'bootID',
    'containerRuntimeVersion',
    'kernelVersion',
    'kubeProxyVersion',
    'machineID',
    'operatingSystem',
    'osImage',
    'systemUUID',
  ].map((field) => [field, '']),
);

afterAll(async () => {
  server.close();
  await kubectlAs('admin', ['delete', 'node', NAME]);
  await kubectlAs('admin', ['delete', 'plans.autopilot.k0sproject.io', '--all']);
});

async function upgrading(user: User, ...flags: string[]) {
  const words = ['upgrade', NEW, '--kubeconfig', await kubeconfigFor(user), '--from', from];
  const { code, stdout, stderr } = await runRefit(...words, '--no-ready', ...flags);
  return { code, stdout: stdout.join('\n'), stderr: stderr.join(' ') };
}

const plansThere = async (): Promise<string> =>
  (await kubectlAs('admin', ['get', 'plans.autopilot.k0sproject.io', '-o', 'name'])).stdout.trim();

test('a user who may only look learns which right is missing before anything is written', async () => {
  const { code, stderr } = await upgrading('viewer', '--yes');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('you may not create plans.autopilot.k0sproject.io'),
  ]);
  expect(await plansThere()).toBe('');
});

test('the API server checks the Plan of a dry run, and stores nothing', async () => {
  const { code, stdout, stderr } = await upgrading('admin', '--dry-run=server');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('this was a dry run, which the API server checked');
  expect(await plansThere()).toBe('');
});

test('what -o yaml prints can be applied with kubectl, and starts the same Plan', async () => {
  const { code, stdout, stderr } = await upgrading('admin', '-o', 'yaml');
  expect([code, stderr]).toEqual([0, '']);
  const applied = await kubectlAs('admin', ['apply', '--dry-run=server', '-f', '-'], stdout);
  expect(applied).toMatchObject({ ok: true });
});

test('the Plan is written with the rights of an operator, and a second upgrade is refused', async () => {
  expect(await upgrading('operator', '--yes')).toMatchObject({ code: 0, stderr: '' });
  expect(await plansThere()).toBe('plan.autopilot.k0sproject.io/autopilot');
  const { code, stderr } = await upgrading('operator', '--yes');
  expect([code, stderr]).toEqual([1, expect.stringContaining('has not ended')]);
});
