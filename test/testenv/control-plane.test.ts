/**
 * Tests that the control plane of the tests is as docs/internals/testenv.md promises: it has an audit log, it can be
 * restarted, and after its end no part of it is left.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { kubectl } from '../../tools/controlplane/kubectl.ts';
import { testUnless } from '../support/left-out.ts';
import { CONTROLLER_ADDRESSES, controlPlane, kubectlAs } from './control-plane.ts';
import { processesNaming } from './processes.ts';
import { WHY_NO_WATCH_LISTS } from './since.ts';

test('the server certificate names the address of every controller', async () => {
  const { port, caCertificate } = controlPlane();
  const certificate = await new Promise<PeerCertificate>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca: caCertificate }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on('error', reject);
  });
  for (const address of ['127.0.0.1', ...CONTROLLER_ADDRESSES]) {
    expect(certificate.subjectaltname?.split(', ')).toContain(`IP Address:${address}`);
  }
});

test('each request leaves one line in the audit log, with user, verb and resource', async () => {
  const name = `audit-${process.pid}`;
  await kubectlAs('viewer', ['get', 'node', name]);
  const lines = await vi.waitFor(() => {
    const found = readFileSync(controlPlane().auditLog, 'utf8')
      .split('\n')
      .filter((line) => line.includes(name));
    expect(found).not.toEqual([]);
    return found;
  }, 60_000);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({
      stage: 'ResponseComplete',
      level: 'Metadata',
      verb: 'get',
      user: expect.objectContaining({ username: 'refit-viewer' }) as unknown,
      objectRef: expect.objectContaining({ resource: 'nodes', name }) as unknown,
      responseStatus: expect.objectContaining({ code: 404 }) as unknown,
    }),
  ]);
});

testUnless(WHY_NO_WATCH_LISTS)('a watch may start with the current state', async () => {
  const query =
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const path = `/api/v1/namespaces?${query}&fieldSelector=metadata.name%3Ddefault&timeoutSeconds=1`;
  const { stdout } = await kubectlAs('admin', ['get', '--raw', path]);
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  expect(events).toMatchObject([
    { type: 'ADDED', object: { metadata: { name: 'default' } } },
    {
      type: 'BOOKMARK',
      object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
    },
  ]);
});

test('a restart of the API server keeps address, data and credentials; stop leaves nothing behind', async () => {
  const own = await startControlPlane();
  const asAdmin = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await kubectl(own.kubectl, await own.kubeconfig('admin'), args);
    return stdout + stderr;
  };
  const apiServerPid = (): string =>
    readFileSync(join(own.directory, 'pids', 'kube-apiserver'), 'utf8');
  try {
    await asAdmin('create', 'namespace', 'kept');
    const before = apiServerPid();
    await own.restartApiServer();
    expect(apiServerPid()).not.toBe(before);
    expect(await asAdmin('get', 'namespace', 'kept', '-o', 'name')).toBe('namespace/kept\n');
    expect(processesNaming(own.directory)).toHaveLength(3); // etcd, kube-apiserver, guard
  } finally {
    await own.stop();
  }
  expect(processesNaming(own.directory)).toEqual([]);
  expect(existsSync(own.directory)).toBe(false);
});
