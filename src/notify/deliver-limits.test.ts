/** Tests the limits of a delivery: its time, the addresses and values that it accepts, and the answers that it reads. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { startStubServer } from '../../test/faults/stub-server.ts';
import { MemoryApi, refusal } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { secrets } from '../kube/resources.ts';
import { deliverer } from './deliver.ts';
import type { Message, Receiver } from './receivers.ts';

const NEVER = new AbortController().signal;
/** The limit for `waitFor`. A busy machine needs longer than the default. */
const WAIT = { timeout: 10_000 };
const MESSAGE: Message = {
  id: 'm1',
  policy: 'careful',
  notes: [
    { id: 'n', event: 'Done', plan: 'toy/ns/plan', message: 'done', at: '2026-11-20T10:00:00Z' },
  ],
};

function scene(url = '') {
  const api = new MemoryApi();
  const data = { url: Buffer.from(url).toString('base64') };
  api.put(secrets, { metadata: { name: 'chat' }, data });
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const tools = { client: api.client, namespace: 'refit-system', environment: {}, clock };
  return { api, deliver: deliverer(tools) };
}

const secret = { name: 'chat', key: 'url' };
const STORED: Receiver = { name: 'chat', type: 'Slack', events: ['Done'], address: { secret } };

function receiverAt(url: string): Receiver {
  return { name: 'chat', type: 'Slack', events: ['Done'], address: { url } };
}

/** Replaces the time limit of a delivery by one that the test ends. */
function timeLimit(): { limits: number[]; end: () => void } {
  const late = new AbortController();
  const limits: number[] = [];
  const spy = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    limits.push(ms);
    return late.signal;
  });
  onTestFinished(() => spy.mockRestore());
  return { limits, end: () => late.abort() };
}

test('a receiver over HTTP that does not answer in time is reported with the limit', async () => {
  const { limits, end } = timeLimit();
  await using server = await startStubServer(() => end());
  const { deliver } = scene();
  expect(await deliver(receiverAt(server.config.server), MESSAGE, NEVER)).toBe(
    'it did not answer within 10 s',
  );
  expect(limits).toEqual([10_000]);
});

test('a path of the address keeps the slash at its end, and the request names Refit', async () => {
  await using server = await startStubServer((_request, response) => response.end('ok'));
  const { deliver } = scene();
  const url = `${server.config.server}/hooks/a/?b=c`;
  expect(await deliver(receiverAt(url), MESSAGE, NEVER)).toBeUndefined();
  expect(server.requests).toMatchObject([
    { url: '/hooks/a/?b=c', headers: { 'user-agent': 'refit' } },
  ]);
});

test.each([
  [200, undefined],
  [299, undefined],
  [300, 'it answered 300 Multiple Choices, and redirects are not followed'],
  [500, 'it answered 500 Internal Server Error'],
])('an answer with status %i gives the problem %s', async (status, problem) => {
  await using server = await startStubServer((_request, response) => {
    response.writeHead(status).end();
  });
  const { deliver } = scene();
  expect(await deliver(receiverAt(server.config.server), MESSAGE, NEVER)).toBe(problem);
});

test('the text of an answer is not read, and the connection is closed', async () => {
  await using server = await startStubServer((_request, response) => {
    response.writeHead(200).write('this answer never ends');
  });
  const { deliver } = scene();
  expect(await deliver(receiverAt(server.config.server), MESSAGE, NEVER)).toBeUndefined();
  await vi.waitFor(() => expect(server.requests[0]?.socket.destroyed).toBe(true), WAIT);
});

test.each([
  ['has another scheme', 'ftp://127.0.0.1:1/http://very-secret'],
  ['contains credentials', 'http://user:very-secret@127.0.0.1:1/'],
  ['contains a space', 'http://127.0.0.1:1/very secret'],
  ['is no URL', 'http://[very-secret'],
])('an address in a Secret that %s is refused without being shown', async (_title, url) => {
  expect(await scene(url).deliver(STORED, MESSAGE, NEVER)).toBe(
    'the key url of Secret refit-system/chat must be a URL that begins with http:// or https:// and contains no credentials',
  );
});

test.each([
  ['as long as allowed', 4096, 'it cannot be reached (ECONNREFUSED)'],
  ['longer', 4097, 'the key url of Secret refit-system/chat is longer than 4096'],
])('a value of a Secret that is %s: %i bytes', async (_title, length, problem) => {
  const url = 'http://127.0.0.1:1/'.padEnd(length, 'a');
  expect(await scene(url).deliver(STORED, MESSAGE, NEVER)).toBe(problem);
});

test('a Secret about which the API server gives no answer is named', async () => {
  const { api, deliver } = scene();
  api.before('get secrets/chat', () => {
    throw refusal(503, 'ServiceUnavailable');
  });
  expect(await deliver(STORED, MESSAGE, NEVER)).toBe(
    'the API server gave no usable answer about Secret refit-system/chat',
  );
});

test('a Secret whose read is aborted is named', async () => {
  const { api, deliver } = scene();
  const stop = new AbortController();
  api.before('get secrets/chat', () => {
    stop.abort();
    throw new Error('aborted');
  });
  expect(await deliver(STORED, MESSAGE, stop.signal)).toBe(
    'Secret refit-system/chat cannot be read',
  );
});
