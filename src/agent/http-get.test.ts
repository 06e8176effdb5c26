/** Owns the proof of whom a download server is believed, and to whom its credentials are told. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { systemClock } from '../util/clock.ts';
import { httpGet } from './http-get.ts';

const MODULE = new URL('./http-get.ts', import.meta.url).href;
const NEVER = new AbortController().signal;

/** What a process says that asks for `url` and finds nothing but these authorities on its host. */
async function askAs(url: string, authorities: string): Promise<string> {
  const script = `import { httpGet } from '${MODULE}';
    const signal = new AbortController().signal;
    const said = await httpGet('${url}', {}, signal).then(({ response }) => response.statusCode, ({ cause }) => cause.code);
    process.stdout.write(String(said));
    process.exit();`;
  const env = { SSL_CERT_FILE: authorities, SSL_CERT_DIR: join(authorities, '..', 'none') };
  const args = ['--no-warnings', '--input-type=module', '--eval', script];
  return (await promisify(execFile)(process.execPath, args, { env })).stdout;
}

test('a server is believed whose authority is installed on the host, and no other', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-authorities-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const validity = validFrom(systemClock.now());
  const subject = { commonName: 'ours' };
  const own = createAuthority(subject, validity);
  const names = { dns: [], addresses: ['127.0.0.1'] };
  const { certificate: cert, key } = issueServer({ subject, key: own.key }, names, validity);
  await using server = await startStubServer((_request, response) => response.end('k0s'), { cert, key });
  const [installed, other] = [join(directory, 'installed.pem'), join(directory, 'other.pem')];
  await writeFile(installed, own.certificate);
  await writeFile(other, createAuthority({ commonName: 'others' }, validity).certificate);
  expect(await askAs(server.config.server, installed)).toBe('200');
  expect(await askAs(server.config.server, other)).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
});

test('user and password of the URL are told to its host, after a redirect too, and to no other', async () => {
  await using other = await startStubServer((_request, response) => response.end());
  await using server = await startStubServer(({ url }, response) => {
    const location = url === '/' ? '/next' : `${other.config.server}/k0s`;
    response.writeHead(302, { location }).end();
  });
  const { response } = await httpGet(server.config.server.replace('//', '//me:secret@'), {}, NEVER);
  response.destroy();
  const told = `Basic ${Buffer.from('me:secret').toString('base64')}`;
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([told, told]);
  expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
});
