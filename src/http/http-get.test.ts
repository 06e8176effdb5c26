/**
 * Tests which download servers are trusted, directly and through a proxy, and which of them get
 * credentials.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type HttpsMirror, startHttpsMirror } from '../../test/agent/https-mirror.ts';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { type Get, httpGet } from './http-get.ts';

const MODULE = new URL('./http-get.ts', import.meta.url).href;
const NEVER = new AbortController().signal;

/** Returns the output of a process that sends the request on a host that trusts only this authority. */
async function askAs(
  { trust }: HttpsMirror,
  request: Omit<Get, 'headers' | 'environment'>,
): Promise<string> {
  const script = `import { httpGet } from '${MODULE}';
    const request = { ...${JSON.stringify(request)}, headers: {}, environment: {} };
    const said = await httpGet(request, new AbortController().signal).then(
      ({ response }) => response.statusCode,
      (error) => [error.name, error.cause?.code ?? error.message].join(': '),
    );
    process.stdout.write(String(said));
    process.exit();`;
  const args = ['--no-warnings', '--input-type=module', '--eval', script];
  return (await promisify(execFile)(process.execPath, args, { env: { ...trust } })).stdout;
}

test('Refit trusts an https server only if the CA of the server is installed on the host', async () => {
  await using mirror = await startHttpsMirror((_request, response) => response.end('k0s'));
  await using other = await startHttpsMirror((_request, response) => response.end('k0s'));
  const { server: url } = mirror.server.config;
  expect(await askAs(mirror, { url })).toBe('200');
  expect(await askAs(other, { url })).toBe('Error: UNABLE_TO_VERIFY_LEAF_SIGNATURE');
});

test('the environment cannot make an unknown certificate count', async () => {
  await using mirror = await startHttpsMirror((_request, response) => response.end('k0s'));
  await using other = await startHttpsMirror((_request, response) => response.end('k0s'));
  const { server: url } = mirror.server.config;
  const trust = { ...other.trust, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  expect(await askAs({ ...other, trust }, { url })).toBe('Error: UNABLE_TO_VERIFY_LEAF_SIGNATURE');
});

test('a redirect from https to plain http is refused for good, unless a flag allows it and nothing requires https', async () => {
  await using plain = await startStubServer((_request, response) => response.end('k0s'));
  await using mirror = await startHttpsMirror(({ url }, response) => {
    const location = { '/': '/next', '/next': `${plain.config.server}/k0s` }[url] ?? '';
    if (location === '') response.end('k0s');
    else response.writeHead(302, { location }).end();
  });
  const url = `${mirror.server.config.server}/`;
  const host = `127.0.0.1:${mirror.server.port}`;
  const weaker = `Error: a redirect of ${host} leads from https to plain http at 127.0.0.1:${plain.port}`;
  expect(await askAs(mirror, { url })).toBe(`${weaker} (see --allow-insecure-redirect)`);
  // Only downloads of plans have the flag, so this error does not mention it.
  expect(await askAs(mirror, { url, source: 'spec.updateServer' })).toBe(weaker);
  expect(plain.requests).toHaveLength(0);
  expect(await askAs(mirror, { url, allowInsecureRedirect: true })).toBe('200');
  expect(plain.requests).toHaveLength(1);
  const refused = `leads to plain http at 127.0.0.1:${plain.port}, but the plan forbids it`;
  expect(await askAs(mirror, { url, requireHttps: 'the plan forbids it' })).toBe(
    `Error: a redirect of ${host} ${refused}`,
  );
  expect(
    await askAs(mirror, { url: plain.config.server, requireHttps: 'the plan forbids it' }),
  ).toBe(`Error: the plan ${refused}`);
  expect(plain.requests).toHaveLength(1);
  expect(await askAs(mirror, { url: `${url}k0s`, requireHttps: 'the plan forbids it' })).toBe(
    '200',
  );
});

test('Refit sends user and password of a URL only to the host of that URL, also after a redirect', async () => {
  await using other = await startStubServer((_request, response) => response.end());
  await using server = await startStubServer(({ url }, response) => {
    const location = url === '/' ? '/next' : `${other.config.server}/k0s`;
    response.writeHead(302, { location }).end();
  });
  const { response } = await httpGet(
    { url: server.config.server.replace('//', '//me:secret@'), headers: {}, environment: {} },
    NEVER,
  );
  response.destroy();
  const told = `Basic ${Buffer.from('me:secret').toString('base64')}`;
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([told, told]);
  expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
});
