/**
 * Tests what an agent answers when its leader asks whether the host could download. The tests use real servers and the
 * real disk.
 */
import { mkdtemp, rename, rm, statfs, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Script, type StubServer, startStubServer } from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { AgentPolicy, Annotations, SignalCommand } from '../../signal/annotations.ts';
import { keptFileUrl } from '../../signal/kept-file.ts';
import { encodeDownloadCheck } from '../../signal/prefetch.ts';
import { downloadChecks } from './download-checks.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const LIMITS = { maxBytes: 10_000, reserveBytes: 0, totalMs: 1, stallMs: 1 };
const SIZE = { 'content-length': 5_000 };

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-checks-'));
  return async () => await rm(directory, { recursive: true });
});

interface Scene {
  readonly server: StubServer;
  readonly clock: FakeClock;
  readonly checks: ReturnType<typeof downloadChecks>;
  readonly check: (policy?: AgentPolicy, url?: string, kind?: SignalCommand['kind']) => Annotations;
}

async function scene(
  script: Script,
  limits: object = {},
  kept?: { readonly path: string; readonly sha256: string },
): Promise<Scene> {
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  const clock = new FakeClock(0);
  const checks = downloadChecks({
    clock,
    limits: { ...LIMITS, ...limits },
    userAgent: 'refit-agent/test (w1)',
    environment: {},
    placeFor: async () =>
      await Promise.resolve({
        directory,
        present: [join(directory, 'staged'), join(directory, 'part')],
        kept: async () => await Promise.resolve(kept),
      }),
  });
  const check: Scene['check'] = (
    policy = {},
    url = `${server.config.server}/k0s?token=secret`,
    kind = 'k0supdate',
  ) =>
    encodeDownloadCheck({
      rollout: 'uid',
      commands: [{ id: 0, kind, url, version: 'v2' }],
      policy,
    });
  return { server, clock, checks, check };
}

const whole: Script = ({ method }, response) =>
  response.writeHead(200, SIZE).end(method === 'HEAD' ? '' : 'x'.repeat(5_000));
const rangesOnly: Script = ({ method, headers }, response) =>
  method === 'GET' && headers.range === 'bytes=0-0'
    ? response.writeHead(206, { 'content-range': 'bytes 0-0/5000', 'content-length': 1 }).end('x')
    : response.writeHead(403).end();
const answering =
  (status: number, headers = {}): Script =>
  (_, response) =>
    response.writeHead(status, headers).end();

test.each<[string, Script, object, AgentPolicy, string | undefined]>([
  ['a file of the right size', whole, {}, {}, undefined],
  ['a server that does not say the size', (_, response) => response.end(), {}, {}, undefined],
  ['a signed URL, which is for GET only', rangesOnly, {}, {}, undefined],
  ['no such file', answering(404), {}, {}, 'answered 404 Not Found'],
  ['a redirect that loops', answering(302, { location: '/k0s' }), {}, {}, 'more than 10 redirects'],
  [
    'too large a file',
    whole,
    { maxBytes: 4_999 },
    {},
    'it has 5000 bytes, which is more than the limit of 4999',
  ],
  [
    'too large a file behind a signed URL',
    rangesOnly,
    { maxBytes: 4_999 },
    {},
    'it has 5000 bytes',
  ],
  ['no room', whole, {}, { diskReserveBytes: 2 ** 60 }, 'bytes free, the download needs 5000'],
  [
    'plain http where the policy requires https',
    whole,
    {},
    { requireHttps: true },
    'leads to plain http',
  ],
  [
    'another host than the agent allows',
    whole,
    { allowedHosts: ['mirror.example'] },
    {},
    'mirror.example',
  ],
  ['no hash and no https', whole, { httpsWithoutHash: true }, {}, 'leads to plain http'],
])('a download is checked before it begins: %s', async (_what, script, limits, policy, problem) => {
  const { checks, check } = await scene(script, limits);
  const answer = await checks(check(policy));
  expect(answer.id).toHaveLength(16);
  if (problem === undefined) expect(answer.problem).toBeUndefined();
  else expect(answer.problem).toContain(problem);
  expect(answer.problem ?? '').not.toContain('secret');
});

test('no bytes of the payload are fetched where the server answers HEAD, and nobody is asked without a check', async () => {
  const { server, checks, check } = await scene(whole);
  expect(await checks({})).toEqual({ id: '', room: expect.any(Number) });
  const answer = await checks(check());
  // The last answer stays after the check was removed.
  expect(await checks(undefined)).toEqual(answer);
  expect(server.requests.map(({ method, headers }) => [method, headers['user-agent']])).toEqual([
    ['HEAD', 'refit-agent/test (w1)'],
  ]);
});

test('a problem is looked at again after a minute, what is well after ten, and another check at once', async () => {
  let isThere = false;
  const { server, clock, checks, check } = await scene((request, response) =>
    isThere ? whole(request, response) : response.writeHead(404).end(),
  );
  const asks = async (): Promise<number> => {
    const before = server.requests.length;
    await checks(check());
    return server.requests.length - before;
  };
  // The agent sends a HEAD request, then a request for the first byte.
  expect([await asks(), await asks()]).toEqual([2, 0]);
  isThere = true;
  await clock.advance(MINUTE - 10 * SECOND);
  expect(await asks()).toBe(1);
  await clock.advance(MINUTE);
  expect(await asks()).toBe(0);
  await clock.advance(9 * MINUTE);
  expect(await asks()).toBe(1);
  expect((await checks(check({}, 'http://127.0.0.1:1/gone'))).problem).toMatch(
    /^http:\/\/127.0.0.1:1\/gone: no answer/,
  );
});

test('a server that never answers is a problem, not a wait without end', async () => {
  const { checks, check } = await scene(() => undefined);
  const { problem } = await checks(check());
  expect(problem).toContain('/k0s');
}, 30_000);

test('each problem of the downloads of a plan is told once', async () => {
  const { server, checks } = await scene(answering(404));
  const command = (id: number, path: string) =>
    ({ id, kind: 'k0supdate', url: `${server.config.server}/${path}`, version: 'v2' }) as const;
  const commands = [command(0, 'a'), command(1, 'b'), command(2, 'a')];
  const { problem = '' } = await checks(
    encodeDownloadCheck({ rollout: 'uid', commands, policy: {} }),
  );
  expect(problem.match(/\/[ab]: .*? answered 404 Not Found/g)).toHaveLength(2);
});

test('a check tells the size of the download, and the room beside the reserve in round numbers', async () => {
  const { bavail, bsize } = await statfs(directory);
  const { clock, checks, check } = await scene(whole, {
    reserveBytes: bavail * bsize - 3 * 2 ** 30,
  });
  const { room = 0 } = await checks({});
  // Other programs write to the disk, too.
  expect([2 ** 30, 2 ** 31]).toContain(room);
  expect(await checks(check())).toMatchObject({ bytes: 5_000 });
  const full = await scene(whole, { reserveBytes: 2 ** 60 });
  expect(await full.checks({})).toEqual({ id: '', room: 0 });
  await clock.advance(10 * MINUTE);
  expect(await checks(check())).toMatchObject({ bytes: 5_000, room: expect.any(Number) });
  const huge = await scene(whole, { reserveBytes: -(2 ** 40) });
  expect((await huge.checks({})).room).toBe(2 ** 32);
});

test('what was fetched ahead needs no room again, and what was fetched of it less', async () => {
  const { bavail, bsize } = await statfs(directory);
  const { checks, check } = await scene(whole);
  const scarce = (reserve: number): Annotations =>
    check({ diskReserveBytes: bavail * bsize * 2 + reserve });
  expect((await checks(scarce(0))).problem).toContain('the download needs 5000 and');
  await writeFile(join(directory, 'part'), 'x'.repeat(2_000));
  expect((await checks(scarce(1))).problem).toContain('the download needs 3000 and');
  await rename(join(directory, 'part'), join(directory, 'staged'));
  await truncate(join(directory, 'staged'), 5_000);
  expect((await checks(scarce(2))).problem).toBeUndefined();
  await rm(join(directory, 'staged'));
});

const SUM = 'ab'.repeat(32);
const commandFor = (url: string, sha256: string) =>
  encodeDownloadCheck({
    rollout: 'uid',
    commands: [{ id: 0, kind: 'k0supdate', url, version: 'v1', sha256 }],
    policy: {},
  });

test.each([
  ['that address', keptFileUrl('v1')],
  ['the address of a server', 'https://127.0.0.1:1/k0s'],
])(
  'a kept file with the sha256 of the plan is possible without a request to %s',
  async (_, url) => {
    const path = join(directory, 'kept');
    await writeFile(path, 'x'.repeat(300));
    const { checks } = await scene(answering(404), {}, { path, sha256: SUM });
    expect(await checks(commandFor(url, SUM.toUpperCase()))).toMatchObject({ bytes: 300 });
    const found = await checks(commandFor(url, SUM));
    expect(found.problem).toBeUndefined();
  },
);

test('a kept file that the disk has no room to copy is impossible', async () => {
  const path = join(directory, 'kept');
  await writeFile(path, 'x'.repeat(300));
  const limits = { reserveBytes: 2 ** 60 };
  const { checks } = await scene(answering(404), limits, { path, sha256: SUM });
  expect((await checks(commandFor(keptFileUrl('v1'), SUM))).problem).toContain('bytes free');
});

test('the address of a kept file is impossible, without a request, on a host that does not keep the file', async () => {
  const { checks } = await scene(whole);
  const { problem } = await checks(commandFor(keptFileUrl('v1'), SUM));
  expect(problem).toBe(
    `the Plan expects that this host keeps the file with the sha256 ${SUM}, but the host does not keep it: name a download in the Plan`,
  );
});
