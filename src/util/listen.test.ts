/**
 * Tests that a server survives connections that it cannot accept, for example because too many files are open, and that
 * it closes its other connections when it ends.
 */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { closeOnAbort, listen } from './listen.ts';

test('a server that listens survives every connection that it cannot accept', async () => {
  const server = createServer();
  const { port } = await listen(server, '127.0.0.1:0');
  onTestFinished(() => void server.close());
  for (let round = 0; round < 2; round++)
    expect(server.emit('error', new Error('accept EMFILE'))).toBe(true);
  await expect(listen(createServer(), `127.0.0.1:${port}`)).rejects.toThrow('EADDRINUSE');
});

test('who waits for an answer is cut off at the end', async () => {
  const server = createHttpServer();
  const { port } = await listen(server, '127.0.0.1:0');
  const client = connect(port, '127.0.0.1', () =>
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  );
  onTestFinished(() => void client.destroy());
  await once(server, 'request');
  const stop = new AbortController();
  const closing = closeOnAbort(server, stop.signal);
  expect(server.listening).toBe(true);
  stop.abort();
  await closing;
  expect(server.listening).toBe(false);
});
