/**
 * Tests how the readiness of an API server is requested. A real script sends the request to a real TLS server, which
 * replaces the API server of a host.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createAuthority,
  issueClient,
  issueServer,
  validFrom,
} from '../../../../tools/controlplane/certs.ts';
import { run } from '../../../../tools/controlplane/run.ts';
import type { Shells } from '../host/host.ts';
import { parseManifest } from '../plan/manifest.ts';
import { throughHosts } from './run-upgrade.ts';

const manifest = parseManifest(
  `{version: v1.36.3, hosts: [{name: cp1, role: controlPlane}, {name: w1, role: worker}],
    binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`,
  'm.yaml',
);
const PKI = '/etc/kubernetes/own/pki';
let root = '';
let answer = 200;
const validity = validFrom(Date.now());
const subject = { commonName: 'kubernetes' };
const authority = createAuthority(subject, validity);
const serving = issueServer(
  { subject, key: authority.key },
  { dns: [], addresses: ['127.0.0.1'] },
  validity,
);
const client = issueClient(
  { subject, key: authority.key },
  { commonName: 'kube-apiserver-kubelet-client' },
  validity,
);
const server = createServer(
  {
    cert: serving.certificate,
    key: serving.key,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  },
  ({ url }, response) => void response.writeHead(url === '/readyz' ? answer : 404).end(),
);

const put = async (path: string, text: string): Promise<void> => {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), text);
};
const writeManifest = async (port: number): Promise<void> =>
  await put(
    'etc/kubernetes/manifests/kube-apiserver.yaml',
    `spec:\n    - --advertise-address=127.0.0.1\n    - --secure-port=${port}\n    - --client-ca-file=${PKI}/ca.crt\n`,
  );

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  root = await mkdtemp(join(tmpdir(), 'refit-api-'));
  await put(`${PKI}/ca.crt`, authority.certificate);
  await put(`${PKI}/apiserver-kubelet-client.crt`, client.certificate);
  await put(`${PKI}/apiserver-kubelet-client.key`, client.key);
});
afterAll(async () => {
  server.close();
  await rm(root, { recursive: true });
});

const shells: Shells = {
  async run(_host, script) {
    const environment = { REFIT_ROOT: root, PATH: process.env['PATH'] ?? '' };
    const { ok, stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
    return { code: ok ? 0 : 1, stdout, stderr };
  },
};
const outOfReach = async (): Promise<number> =>
  await Promise.reject(new Error('connect ETIMEDOUT'));
const askedFor = async (name: string): Promise<number> =>
  await throughHosts(outOfReach, manifest, shells)('10.0.0.1', name);

test('one that this machine reaches is asked directly', async () => {
  const direct = async (): Promise<number> => await Promise.resolve(503);
  expect(await throughHosts(direct, manifest, shells)('10.0.0.1', 'cp1')).toBe(503);
});

test.each([200, 500])(
  'Refit asks an API server it cannot reach from its host, with certificates of that host: %i',
  async (code) => {
    await writeManifest((server.address() as AddressInfo).port);
    answer = code;
    expect(await askedFor('cp1')).toBe(code);
  },
);

test('one that answers nowhere: both reasons are told', async () => {
  // No process listens on port 1.
  await writeManifest(1);
  await expect(askedFor('cp1')).rejects.toThrow(
    /^connect ETIMEDOUT; on its host: curl: \(7\) Failed to connect .*[^0]$/,
  );
  await rm(join(root, 'etc/kubernetes/manifests/kube-apiserver.yaml'));
  await expect(askedFor('cp1')).rejects.toThrow(
    'connect ETIMEDOUT; on its host: kube-apiserver.yaml is missing',
  );
});

test.each(['w1', 'cp9'])(
  '%s is no control-plane host of the manifest: only the direct answer counts',
  async (name) => {
    await expect(askedFor(name)).rejects.toThrow(/^connect ETIMEDOUT$/);
  },
);
