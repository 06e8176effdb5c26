/**
 * Tests which server gets the request for `/readyz`, and that no other server answers in its place.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startStubServer } from '../../../test/faults/stub-server.ts';
import { createAuthority, issueServer } from '../../../tools/controlplane/certs.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { askerOf } from './readyz.ts';

test.each([200, 500])(
  'the answer %i of the address at the port of the connection',
  async (status) => {
    await using server = await startStubServer((_request, response) =>
      response.writeHead(status).end(),
    );
    expect(await askerOf(server.config)('127.0.0.1', { deadlineMs: 5_000 })).toBe(status);
    expect(server.requests.map(({ url }) => url)).toEqual(['/readyz']);
  },
);

const lasting = { notBefore: Date.now() - 86_400_000, notAfter: Date.now() + 86_400_000 };
const authority = createAuthority({ commonName: 'ca' }, lasting);
const issuer = { subject: { commonName: 'ca' }, key: authority.key };
const pair = issueServer(issuer, { dns: [], addresses: ['127.0.0.1'] }, lasting);

test.each<[string, Partial<ClusterConfig>, boolean, string | undefined]>([
  [
    'a certificate that is verified',
    { certificateAuthority: { text: authority.certificate } },
    true,
    'Bearer t',
  ],
  ['a certificate that nobody verifies', { insecureSkipTlsVerify: true }, true, undefined],
  ['no certificate', {}, false, undefined],
])(
  'an address other than that of the connection, with %s: the token is only for proven ones',
  async (_what, trust, isSecure, sent) => {
    const tls = isSecure ? { cert: pair.certificate, key: pair.key } : undefined;
    await using server = await startStubServer(
      (_request, response) => response.writeHead(200).end(),
      tls,
    );
    const own = `${isSecure ? 'https' : 'http'}://127.0.0.9:1/prefix`;
    const config = { ...server.config, ...trust, server: own, user: { token: 't' } };
    expect(await askerOf(config)('127.0.0.1', { port: server.port, deadlineMs: 5_000 })).toBe(200);
    expect(server.requests[0]?.headers.authorization).toBe(sent);
  },
);

test('the address of the connection gets the token in any case', async () => {
  await using server = await startStubServer((_request, response) => response.writeHead(200).end());
  expect(
    await askerOf({ ...server.config, user: { token: 't' } })('127.0.0.1', { deadlineMs: 5_000 }),
  ).toBe(200);
  expect(server.requests[0]?.headers.authorization).toBe('Bearer t');
});

test('a credential plugin runs once for many questions', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-readyz-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const apiVersion = 'client.authentication.k8s.io/v1';
  const credential = JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token: 't' } });
  const runs = join(directory, 'runs');
  const args = ['-c', 'echo run >>"$0"; echo "$1"', runs, credential];
  await using server = await startStubServer((_request, response) => response.writeHead(200).end());
  const exec = { apiVersion, command: 'sh', args, env: {}, provideClusterInfo: false };
  const ask = askerOf({ ...server.config, user: { exec } });
  for (let round = 0; round < 3; round++)
    expect(await ask('127.0.0.1', { deadlineMs: 5_000 })).toBe(200);
  expect(await readFile(runs, 'utf8')).toBe('run\n');
});

test.each(['', ' ', '999.999.1.1', 'a/b', 'user@127.0.0.1', '127.0.0.1?', ':', 'fe80::1%eth0'])(
  'what is no address is not asked, nor is anybody in its place: "%s"',
  async (host) => {
    await using server = await startStubServer((_request, response) =>
      response.writeHead(200).end(),
    );
    await expect(askerOf(server.config)(host, { deadlineMs: 5_000 })).rejects.toThrow(
      'is not the address',
    );
    expect(server.requests).toEqual([]);
  },
);

test('a /readyz request fails at its deadline if the API server accepts it and stays silent', async () => {
  await using server = await startStubServer(() => undefined);
  await expect(askerOf(server.config)('127.0.0.1', { deadlineMs: 500 })).rejects.toThrow('/readyz');
  expect(server.requests).toHaveLength(1);
});

test('an answer that is far too long is none that counts', async () => {
  await using server = await startStubServer((_request, response) =>
    response.end('#'.repeat(1024 * 1024 + 1)),
  );
  await expect(askerOf(server.config)('127.0.0.1', { deadlineMs: 5_000 })).rejects.toThrow(
    '/readyz',
  );
});
