/** Tests that a server cannot make `refit upgrade` wait without end, read without end, or trust what is no file. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Script, startStubServer } from '../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { checkFile, digestOfFile, textAt, type WebTools } from './published-file.ts';

/** A busy machine may need long until the request is there. */
const WAIT = { timeout: 30_000 };

async function serving(script: Script) {
  const server = await startStubServer(script);
  const clock = new FakeClock();
  const stop = new AbortController();
  const tools: WebTools = { clock, environment: {}, abort: stop.signal };
  return { server, clock, stop, tools, url: `http://127.0.0.1:${server.port}/file` };
}

test('a server that never answers is given up after half a minute', async () => {
  const { server, clock, tools, url } = await serving(() => undefined);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  const asked = digestOfFile(url, 'amd64', tools);
  asked.catch(() => undefined);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  await clock.advance(30_000);
  await expect(asked).rejects.toThrow('received nothing for 30 s');
});

test('a file that never ends is given up after half an hour', async () => {
  const { server, clock, tools, url } = await serving((_request, response) => {
    response.write('k0s, a program without an end');
  });
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  const asked = digestOfFile(url, undefined, tools);
  asked.catch(() => undefined);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  await clock.advance(30 * 60_000);
  await expect(asked).rejects.toThrow(/received nothing|took too long/);
});

test('a user who interrupts the command waits for no file', async () => {
  const { server, stop, tools, url } = await serving(() => undefined);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  const asked = checkFile(url, undefined, tools);
  asked.catch(() => undefined);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), WAIT);
  stop.abort(new Error('interrupted'));
  await expect(asked).rejects.toThrow('interrupted');
});

test.each<[string, string | Buffer, string]>([
  ['is empty', '', 'the file is empty'],
  ['is a page', '\n <!doctype html><title>Sign in</title>', 'the server sent HTML'],
  ['is shorter than the head of a program, and a page', '<a>', 'the server sent HTML'],
])('a file that %s is refused', async (_title, body, message) => {
  const { server, tools, url } = await serving((_request, response) => void response.end(body));
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  await expect(checkFile(url, 'amd64', tools)).rejects.toThrow(message);
  await expect(digestOfFile(url, 'amd64', tools)).rejects.toThrow(message);
});

test('a text that does not exist is told from one that cannot be had', async () => {
  let status = 404;
  const { server, tools, url } = await serving((_request, response) => {
    response.writeHead(status).end();
  });
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  expect(await textAt(url, tools)).toBeUndefined();
  for (status of [403, 500, 503])
    await expect(textAt(url, tools)).rejects.toThrow(`answered ${status}`);
});

test('a text of more than 64 KiB is not read', async () => {
  const { server, tools, url } = await serving((_request, response) => {
    response.end('a'.repeat(65 * 1024));
  });
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  await expect(textAt(url, tools)).rejects.toThrow('larger than 64 KiB');
});
