/** Tests how the served dashboard listens: with which certificate, at which addresses and under which names. */
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import {
  createAuthority,
  issueServer,
  type KeyPair,
  validFrom,
} from '../../../tools/controlplane/certs.ts';
import { checkServedOptions, serveForViewers } from './server.ts';

const SUBJECT = { commonName: 'dashboard' };
const VALIDITY = validFrom(Date.now());
const authority = createAuthority(SUBJECT, VALIDITY);

function issueFor(dns: readonly string[], addresses: readonly string[] = []): KeyPair {
  return issueServer({ subject: SUBJECT, key: authority.key }, { dns, addresses }, VALIDITY);
}

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-dashboard-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  return folder;
}

/** Replaces the certificate as an operator does: writes whole files and renames them to their final names. */
async function writePair(folder: string, { certificate, key }: KeyPair): Promise<void> {
  for (const [name, content] of [
    ['tls.key', key],
    ['tls.crt', certificate],
  ] as const) {
    await writeFile(join(folder, `${name}.new`), content);
    await rename(join(folder, `${name}.new`), join(folder, name));
  }
}

/** Serves with the certificate in the folder; without TLS if there is no folder. */
async function serve(certificates: string | undefined, names: readonly string[] = []) {
  const lines: string[] = [];
  const stop = new AbortController();
  const server = await serveForViewers({
    address: '127.0.0.1:0',
    certificates,
    names,
    connection: { kubeconfig: '/nowhere/kubeconfig' },
    modules: [],
    files: { script: 'script', style: 'style' },
    clock: new FakeClock(),
    log: buildLog(lines, 'info'),
  });
  const running = server.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort(new Error('the test is over'));
    await running;
  };
  onTestFinished(end);
  return { ...server, lines, end };
}

/** Asks for the style, which needs no token. */
async function ask(port: number, host: string) {
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/ui.css',
    headers: { host },
    ca: authority.certificate,
    checkServerIdentity: () => undefined,
    agent: false,
  });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { code: answer.statusCode, body: await text(answer) };
}

test('over TLS the names and addresses of the certificate, and the configured names, are names of the server', async () => {
  const folder = await makeFolder();
  await writePair(folder, issueFor(['refit.example.com', '*.internal.example'], ['192.0.2.7']));
  const { port, lines } = await serve(folder, ['Ingress.example.com']);
  for (const host of [
    'refit.example.com',
    'a.internal.example',
    '192.0.2.7',
    'ingress.example.com',
  ])
    expect(await ask(port, `${host}:${port}`), host).toEqual({ code: 200, body: 'style' });
  const others = [
    'evil.example',
    'a.b.internal.example',
    '192.0.2.8',
    'dashboard',
    '*',
    '.',
    '[fe80::1%eth0]',
    '[',
    '%',
  ];
  for (const host of others) expect(await ask(port, host), host).toMatchObject({ code: 421 });
  // Such a request is no failure of the server, so strangers cannot fill the log with them.
  expect(lines).toHaveLength(1);
});

test('the log says where the dashboard is served', async () => {
  const { name, port, lines } = await serve(undefined);
  expect(name).toBe('dashboard');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ msg: 'the dashboard is served', address: '127.0.0.1:0', port }),
  ]);
});

test('a certificate that is replaced is used, with its names, until the server ends', async () => {
  const folder = await makeFolder();
  await writePair(folder, issueFor(['old.example.com']));
  const { port, end } = await serve(folder);
  expect(await ask(port, 'old.example.com')).toMatchObject({ code: 200 });
  await writePair(folder, issueFor(['new.example.com']));
  await expect.poll(async () => (await ask(port, 'new.example.com')).code).toBe(200);
  expect(await ask(port, 'old.example.com')).toMatchObject({ code: 421 });
  await end();
  await expect(ask(port, 'new.example.com')).rejects.toThrow('ECONNREFUSED');
});

test('options that cannot be used together are refused before the server listens', async () => {
  const folder = await makeFolder();
  await writePair(folder, issueFor(['refit.example.com']));
  await checkServedOptions({ address: '127.0.0.1:0' });
  await checkServedOptions({ address: ':8443', certificates: folder });
  const refused = async (options: Parameters<typeof checkServedOptions>[0]) =>
    await checkServedOptions(options).catch((error: unknown) => error);
  expect(await refused({ address: '192.0.2.1:8443' })).toMatchObject({
    code: 'REFIT_USAGE',
    line: 'REFIT_USAGE: --ui-address 192.0.2.1:8443 listens at 192.0.2.1, where the tokens of viewers need TLS (add --ui-cert-dir with tls.crt and tls.key, or listen at 127.0.0.1)',
  });
  expect(await refused({ address: ':8443' })).toMatchObject({
    message: '--ui-address :8443 listens at all addresses, where the tokens of viewers need TLS',
  });
  expect(await refused({ address: '127.0.0.1:0', tokenHeader: 'X-Token' })).toMatchObject({
    code: 'REFIT_USAGE',
  });
  const empty = await makeFolder();
  expect(await refused({ address: ':8443', certificates: empty })).toMatchObject({
    code: 'REFIT_FILE',
    message: expect.stringContaining(
      `cannot use ${join(empty, 'tls.crt')} with ${join(empty, 'tls.key')}`,
    ) as string,
  });
});
