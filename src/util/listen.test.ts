/** Shows that a server outlives connections that it cannot accept, such as for want of files. */
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from './listen.ts';

test('a server that listens survives every connection that it cannot accept', async () => {
  const server = createServer();
  const { port } = await listen(server, '127.0.0.1:0');
  onTestFinished(() => void server.close());
  for (let round = 0; round < 2; round++) expect(server.emit('error', new Error('accept EMFILE'))).toBe(true);
  await expect(listen(createServer(), `127.0.0.1:${port}`)).rejects.toThrow('EADDRINUSE');
});
