/**
 * Tests how a request proves its identity to the server: tokens and certificates that rotate,
 * plugins, impersonation, and trust.
 */
import { chmod, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  type Script,
  sendJson,
  sendStatus,
  startStubServer,
} from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { createAuthority, issueClient, issueServer } from '../../../tools/controlplane/certs.ts';
import { messageOf } from '../../util/errors.ts';
import { nodes } from '../resources.ts';
import { describeProblem } from '../status-error.ts';
import { createClient } from '../transport/http-client.ts';
import type { ClusterConfig, ExecConfig } from './cluster-config.ts';

const DAY_MS = 86_400_000;
const SUBJECT = { commonName: 'test-ca' };
const lasting = { notBefore: Date.now() - DAY_MS, notAfter: Date.now() + DAY_MS };
const expired = { notBefore: Date.now() - 2 * DAY_MS, notAfter: Date.now() - DAY_MS };
const ca = createAuthority(SUBJECT, lasting);
const issuer = { subject: SUBJECT, key: ca.key };
const names = { dns: ['api.test'], addresses: ['127.0.0.1'] };
const serverPair = issueServer(issuer, names, lasting);
const tls = {
  cert: serverPair.certificate,
  key: serverPair.key,
  ca: ca.certificate,
  requestCert: true,
  rejectUnauthorized: false,
};
const trust = { certificateAuthority: { text: ca.certificate } };

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-credentials-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const ok: Script = (_request, response) => sendJson(response, 200, { metadata: { name: 'n1' } });

/** Writes a file whose modification time differs from the modification time of every earlier file. */
async function write(name: string, text: string, version = 0): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  await utimes(path, new Date(version), new Date(1_000_000 + version * 10_000));
  return path;
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
}

test('a token file is read again when it changes, and not for every request', async () => {
  const clock = new FakeClock();
  const tokenFile = await write('token', 'one\n', 1);
  await using server = await startStubServer(ok);
  const client = createClient({ ...server.config, user: { token: 'never', tokenFile } }, { clock });
  await client.get(nodes, 'n1');
  await write('token', 'two\n', 2);
  await client.get(nodes, 'n1');
  await clock.advance(1_000);
  await client.get(nodes, 'n1');
  const tokens = server.requests.map(({ headers }) => headers.authorization);
  expect(tokens).toEqual(['Bearer one', 'Bearer one', 'Bearer two']);
});

test.each([
  [
    { tokenFile: '/nowhere/token' },
    /^cannot read the file of tokenFile: ENOENT: .*'\/nowhere\/token'$/,
  ],
  [
    { clientKey: { file: '/nowhere/key' } },
    /^cannot read the file of client-key: ENOENT: .*'\/nowhere\/key'$/,
  ],
  [
    { token: 'secret\npart' },
    /^the token has a line break, or a character that no token has; write it in one line$/,
  ],
])('a mistake in the kubeconfig is none of the connection: %j', async (user, message) => {
  await using server = await startStubServer(ok);
  using client = createClient({ ...server.config, user });
  const problem = describeProblem(await client.get(nodes, 'n1').catch((error: unknown) => error));
  expect(problem.code).toBe('REFIT_KUBECONFIG');
  expect(problem.message).toMatch(message);
});

test('after a 401 the token file is read at once, and the request sent once more', async () => {
  const tokenFile = await write('refused', 'old', 1);
  await using server = await startStubServer((request, response) => {
    if (request.headers.authorization === 'Bearer new') ok(request, response);
    else sendStatus(response, 401, 'Unauthorized');
  });
  const client = createClient({ ...server.config, user: { tokenFile } });
  await expect(client.get(nodes, 'n1')).rejects.toMatchObject({ code: 401 });
  await write('refused', 'new', 2);
  await client.get(nodes, 'n1');
  expect(server.requests).toHaveLength(4);
});

test('a plain token that is refused is not tried again', async () => {
  await using server = await startStubServer((_request, response) =>
    sendStatus(response, 401, 'Unauthorized'),
  );
  const error = await failure(
    createClient({ ...server.config, user: { token: 't' } }).get(nodes, 'n1'),
  );
  expect(server.requests).toHaveLength(1);
  expect(describeProblem(error)).toMatchObject({
    code: 'REFIT_UNAUTHORIZED',
    message: expect.stringContaining(server.config.server),
  });
});

test('impersonation goes into headers, each value on its own', async () => {
  const impersonate = {
    user: 'eve',
    uid: '7',
    groups: ['a', 'b'],
    extra: { 'example.org/Team (1)': ['x', 'y'] },
  };
  await using server = await startStubServer(ok);
  await createClient({ ...server.config, user: { impersonate } }).get(nodes, 'n1');
  const raw = server.requests[0]?.rawHeaders ?? [];
  const pairs = raw.flatMap((name, index) =>
    name.startsWith('impersonate') ? [`${name}: ${raw[index + 1]}`] : [],
  );
  expect(pairs).toEqual([
    'impersonate-user: eve',
    'impersonate-uid: 7',
    'impersonate-group: a',
    'impersonate-group: b',
    'impersonate-extra-example.org%2FTeam%20%281%29: x',
    'impersonate-extra-example.org%2FTeam%20%281%29: y',
  ]);
});

/** Writes a plugin that counts its runs, saves its input, and prints `status`. */
async function plugin(
  name: string,
  status: string,
): Promise<{ exec: ExecConfig; runs: () => Promise<number>; info: () => Promise<unknown> }> {
  const log = join(directory, `${name}.log`);
  const info = join(directory, `${name}.info`);
  const command = join(directory, name);
  const lines = [
    '#!/bin/sh',
    `echo run >> ${log}`,
    `printf %s "$KUBERNETES_EXEC_INFO" > ${info}`,
    `N=$(wc -l < ${log} | tr -d ' ')`,
    `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status.replaceAll('$N', `'"$N"'`)}}'`,
  ];
  await writeFile(command, lines.join('\n'));
  await chmod(command, 0o755);
  const apiVersion = 'client.authentication.k8s.io/v1';
  const exec = { apiVersion, command, args: [], env: {}, provideClusterInfo: true } as const;
  return {
    exec,
    runs: async () => (await readFile(log, 'utf8')).trim().split('\n').length,
    info: async () => JSON.parse(await readFile(info, 'utf8')) as unknown,
  };
}

test('a plugin runs once for many callers, and hears of the cluster', async () => {
  const { exec, runs, info } = await plugin('once', '{"token":"t$N"}');
  await using server = await startStubServer(ok);
  const cluster = {
    tlsServerName: 'api.test',
    proxyUrl: 'http://p',
    certificateAuthority: { text: 'CA' },
  };
  const client = createClient({ ...server.config, ...cluster, user: { exec } });
  await Promise.all(Array.from({ length: 20 }, async () => await client.get(nodes, 'n1')));
  expect(await runs()).toBe(1);
  expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(
    new Set(['Bearer t1']),
  );
  expect(await info()).toEqual({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      cluster: {
        server: server.config.server,
        'tls-server-name': 'api.test',
        'certificate-authority-data': 'Q0E=',
        'proxy-url': 'http://p',
      },
    },
  });
});

test('a plugin runs again after its credential expired, and once after a 401', async () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const { exec, runs } = await plugin(
    'expiring',
    '{"token":"t$N","expirationTimestamp":"2026-01-01T00:01:00Z"}',
  );
  await using server = await startStubServer((request, response) => {
    if (request.headers.authorization === 'Bearer t1') sendStatus(response, 401, 'Unauthorized');
    else ok(request, response);
  });
  const client = createClient({ ...server.config, user: { exec } }, { clock });
  await Promise.all([client.get(nodes, 'n1'), client.get(nodes, 'n1')]);
  expect(await runs()).toBe(2);
  await client.get(nodes, 'n1');
  expect(await runs()).toBe(2);
  await clock.advance(60_000);
  await client.get(nodes, 'n1');
  expect(await runs()).toBe(3);
});

test.each([
  ['no JSON', 'oops', 'printed no ExecCredential'],
  [
    'nothing of use',
    '{"expirationTimestamp":"2026-01-01T00:01:00Z"}',
    'printed neither token nor certificate',
  ],
])('a plugin with %s', async (name, status, message) => {
  const { exec } = await plugin(name.replaceAll(' ', '-'), status);
  await using server = await startStubServer(ok);
  const error = describeProblem(
    await failure(createClient({ ...server.config, user: { exec } }).get(nodes, 'n1')),
  );
  expect(error).toMatchObject({
    code: 'REFIT_KUBECONFIG',
    message: expect.stringContaining(message),
  });
});

test('a plugin that is missing: its own hint is shown', async () => {
  const { exec } = await plugin('missing', '{}');
  const user = {
    exec: { ...exec, command: '/nowhere/plugin', installHint: 'install it with care' },
  };
  await using server = await startStubServer(ok);
  const error = describeProblem(
    await failure(createClient({ ...server.config, user }).get(nodes, 'n1')),
  );
  expect(error.message).toMatch(
    /plugin \/nowhere\/plugin failed: .*ENOENT.*; install it with care/,
  );
});

test('a plugin that fails without a word: its arguments, which may hold a token, are not shown', async () => {
  const { exec } = await plugin('failing', '{}');
  const user = { exec: { ...exec, command: 'false', args: ['--token=s3cr3t'] } };
  await using server = await startStubServer(ok);
  const thrown = await failure(createClient({ ...server.config, user }).get(nodes, 'n1'));
  expect(describeProblem(thrown).message).toContain('exec plugin false failed: exit code 1');
  expect(messageOf(thrown)).not.toContain('s3cr3t');
});

test('a plugin that takes too long is blamed itself, not the server, which nobody has asked', async () => {
  const { exec } = await plugin('late', '{}');
  const user = { exec: { ...exec, command: 'sh', args: ['-c', 'exec sleep 60'] } };
  await using server = await startStubServer(ok);
  using client = createClient({ ...server.config, user });
  const thrown = await failure(client.get(nodes, 'n1', { deadlineMs: 100 }));
  const { line } = describeProblem(thrown);
  expect(line).toMatch(
    /^REFIT_KUBECONFIG: exec plugin sh gave no credential within .*run the plugin by hand/,
  );
  expect(thrown).toMatchObject({ maybeApplied: false });
});

test('a plugin that runs ends with its client', async () => {
  const { exec } = await plugin('slow', '{}');
  const pid = join(directory, 'slow.pid');
  const script = `echo $$ > ${pid}.new; mv ${pid}.new ${pid}; exec sleep 60`;
  const user = { exec: { ...exec, command: 'sh', args: ['-c', script] } };
  await using server = await startStubServer(ok);
  const client = createClient({ ...server.config, user });
  const failed = failure(client.get(nodes, 'n1'));
  const running = Number(await vi.waitFor(async () => await readFile(pid, 'utf8'), 10_000));
  expect(process.kill(running, 0)).toBe(true);
  client[Symbol.dispose]();
  expect(await failed).toBeInstanceOf(Error);
  await vi.waitFor(() => expect(() => process.kill(running, 0)).toThrow('ESRCH'), 10_000);
});

test('client certificates are presented, and connections made anew when the files change', async () => {
  const clock = new FakeClock();
  const users = ['one', 'two'].map((commonName) => issueClient(issuer, { commonName }, lasting));
  const pair = async (version: number): Promise<[string, string]> => [
    await write('client.crt', users[version]?.certificate ?? '', version),
    await write('client.key', users[version]?.key ?? '', version),
  ];
  const [cert, key] = await pair(0);
  const seen: string[] = [];
  await using server = await startStubServer((request, response) => {
    seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
    ok(request, response);
  }, tls);
  const user = { clientCertificate: { file: cert }, clientKey: { file: key } };
  const client = createClient({ ...server.config, ...trust, user }, { clock });
  await client.get(nodes, 'n1');
  await client.get(nodes, 'n1');
  await pair(1);
  await clock.advance(1_000);
  await client.get(nodes, 'n1');
  await client.get(nodes, 'n1');
  expect(seen).toEqual(['one', 'one', 'two', 'two']);
  expect(server.connections()).toBe(2);
});

test.each<
  [string, Partial<ClusterConfig>, { certificate: string; key: string }, RegExp | undefined]
>([
  ['a known authority', trust, serverPair, undefined],
  ['no check at all', { insecureSkipTlsVerify: true }, serverPair, undefined],
  ['an unknown authority', {}, serverPair, /unable to verify the first certificate/],
  [
    'another name',
    trust,
    issueServer(issuer, { dns: ['else'], addresses: ['127.0.0.2'] }, lasting),
    /IP: 127.0.0.1 is not in the cert/,
  ],
  [
    'another name, as told',
    { ...trust, tlsServerName: 'else' },
    issueServer(issuer, { dns: ['else'], addresses: [] }, lasting),
    undefined,
  ],
  [
    'an expired certificate',
    trust,
    issueServer(issuer, names, expired),
    /its certificate has expired/,
  ],
])('a server with %s', async (_name, config, pair, problem) => {
  await using server = await startStubServer(ok, { cert: pair.certificate, key: pair.key });
  const asked = createClient({ ...server.config, ...config }).get(nodes, 'n1');
  if (problem === undefined) {
    expect(await asked).toMatchObject({ metadata: { name: 'n1' } });
    return;
  }
  const error = describeProblem(await failure(asked));
  expect(error).toMatchObject({ code: 'REFIT_TLS', message: expect.stringMatching(problem) });
  expect(error.message).toContain(`cannot reach ${server.config.server}: `);
});

test('a key that does not fit its certificate, as between two rotations, leaves no connection open', async () => {
  const [one, two] = ['one', 'two'].map((commonName) =>
    issueClient(issuer, { commonName }, lasting),
  );
  const user = {
    clientCertificate: { text: one?.certificate ?? '' },
    clientKey: { text: two?.key ?? '' },
  };
  await using server = await startStubServer(ok, tls);
  const client = createClient({ ...server.config, ...trust, user });
  const sockets = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const before = sockets();
  for (let round = 0; round < 3; round++)
    expect(describeProblem(await failure(client.get(nodes, 'n1')))).toMatchObject({
      code: 'REFIT_TLS',
    });
  await expect.poll(sockets).toBeLessThanOrEqual(before);
});

test('an expired client certificate is named as the reason of a 401', async () => {
  const { certificate, key } = issueClient(issuer, { commonName: 'late' }, expired);
  await using server = await startStubServer(
    (_request, response) => sendStatus(response, 401, 'Unauthorized'),
    tls,
  );
  const user = { clientCertificate: { text: certificate }, clientKey: { text: key } };
  const error = describeProblem(
    await failure(createClient({ ...server.config, ...trust, user }).get(nodes, 'n1')),
  );
  expect(error.code).toBe('REFIT_TLS');
  expect(error.message).toMatch(/refused the client certificate: it expired on \d{4}-/);
});

test.each([
  ['https', { cert: serverPair.certificate, key: serverPair.key }],
  ['http', undefined],
])(
  'a write over %s that is given up is cut off: nothing of it may arrive later',
  async (_name, secure) => {
    const clock = new FakeClock();
    const broken = Promise.withResolvers<unknown>();
    await using server = await startStubServer(
      ({ socket }) => void socket.once('error', broken.resolve),
      secure,
    );
    const client = createClient({ ...server.config, ...trust }, { clock, deadlineMs: 1_000 });
    const failed = failure(client.replace(nodes, { metadata: { name: 'n1' } }));
    await expect.poll(() => server.requests.length).toBe(1);
    await clock.advance(1_000);
    expect(await failed).toMatchObject({ maybeApplied: true });
    expect(await broken.promise).toMatchObject({ code: 'ECONNRESET' });
  },
);
