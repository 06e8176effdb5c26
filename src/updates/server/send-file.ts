/** Sends files, whole or in ranges. All downloads share one bounded cache, and use its blocks without a copy. */
import { open } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Bytes of one block of a file. At most one block waits in memory for each client, even if the client reads slowly or not at all. */
export const BLOCK_BYTES = 128 * 1024;
/** The most blocks in the cache. Together they have at most 128 MiB. */
const MOST_BLOCKS = 1024;

/** Caches blocks of immutable files by path. It removes the block that was not used for the longest time. */
export class BlockCache {
  readonly #blocks = new Map<string, Promise<Buffer>>();

  async read(path: string, index: number): Promise<Buffer> {
    const key = `${index} ${path}`;
    const block = this.#blocks.get(key) ?? readBlock(path, index);
    this.#blocks.delete(key);
    this.#blocks.set(key, block);
    block.catch(() => this.#blocks.delete(key));
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > MOST_BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
    return await block;
  }
}

async function readBlock(path: string, index: number): Promise<Buffer> {
  await using handle = await open(path);
  const buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  const position = index * BLOCK_BYTES;
  const { bytesRead } = await handle.read({ buffer, position });
  return buffer.subarray(0, bytesRead);
}

export interface ServedFile {
  readonly path: string;
  readonly size: number;
  /** A strong ETag, made from the content. */
  readonly etag: string;
  readonly cache: BlockCache;
}

/** Sends the file. Resolves with the number of bytes that were sent, even if the client disconnects. */
export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: ServedFile,
): Promise<number> {
  const { size, etag } = file;
  const head = {
    etag,
    'accept-ranges': 'bytes',
    'cache-control': 'public, max-age=31536000, immutable',
  };
  const sendHead = (
    status: number,
    more: Readonly<Record<string, string | number>> = {},
  ): number => {
    response.writeHead(status, { ...head, ...more }).end();
    return 0;
  };
  if (request.headers['if-none-match'] === etag) return sendHead(304);
  const range = rangeOf(request, size, etag);
  if (range === 'unsatisfiable') return sendHead(416, { 'content-range': `bytes */${size}` });
  const { from, to } = range ?? { from: 0, to: size - 1 };
  const body = {
    'content-type': 'application/octet-stream',
    'content-length': to - from + 1,
    ...(range && { 'content-range': `bytes ${from}-${to}/${size}` }),
  };
  if (request.method === 'HEAD') return sendHead(range ? 206 : 200, body);
  response.writeHead(range ? 206 : 200, { ...head, ...body });
  return await sendBytes(response, file, from, to);
}

/**
 * Returns the requested range; undefined stands for the whole file. `to` is the last byte. A request for several ranges gets
 * the whole file (RFC 9110, 14.2).
 */
function rangeOf({ headers }: IncomingMessage, size: number, etag: string) {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(headers.range ?? '') ?? [];
  const isStale = headers['if-range'] !== undefined && headers['if-range'] !== etag;
  if ((first === '' && last === '') || isStale) return undefined;
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  return from > to ? 'unsatisfiable' : { from, to };
}

async function sendBytes(
  response: ServerResponse,
  { path, cache }: ServedFile,
  from: number,
  to: number,
) {
  // One listener serves all pieces, because adding a listener for each piece would cost more than sending the piece.
  let wake = (): void => undefined;
  response.once('close', () => wake());
  let at = from;
  while (at <= to && !response.destroyed) {
    const block = await cache.read(path, Math.floor(at / BLOCK_BYTES));
    const piece = block.subarray(at % BLOCK_BYTES, (at % BLOCK_BYTES) + to - at + 1);
    // If the piece is empty, the file was truncated during the download. The server then breaks the connection, so that
    // the client does not mistake the shorter file for the whole file.
    if (piece.length === 0) response.destroy();
    await new Promise<void>((resolve) => {
      wake = resolve;
      response.write(piece, () => setImmediate(resolve));
    });
    at += piece.length;
  }
  response.end();
  return at - from;
}
