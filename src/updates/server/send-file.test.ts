/** Proves that a client which requests everything at once does not delay the other clients. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { BLOCK_BYTES, BlockCache, sendFile } from './send-file.ts';

const BLOCKS = 20;

class Cached extends BlockCache {
  override async read(): Promise<Buffer> {
    return await Promise.resolve(Buffer.alloc(BLOCK_BYTES));
  }
}

test('other requests have their turn after each block of a file, however fast its client reads', async () => {
  let turns = 0;
  let next = setImmediate(function turn() {
    turns++;
    next = setImmediate(turn);
  });
  const response = {
    once: () => response,
    writeHead: () => response,
    write: (_piece: Buffer, taken: () => void) => process.nextTick(taken),
    end: () => response,
  };
  const file = { path: 'f', size: BLOCKS * BLOCK_BYTES, etag: '"e"', cache: new Cached() };
  const sent = await sendFile(
    { headers: {} } as IncomingMessage,
    response as unknown as ServerResponse,
    file,
  );
  clearImmediate(next);
  expect(sent).toBe(file.size);
  expect(turns).toBeGreaterThanOrEqual(BLOCKS - 1);
});
