/** Hashes files without loading them into memory. */
import { createHash, type Hash } from 'node:crypto';
import type { Files } from '../state/durable-files.ts';

const CHUNK_BYTES = 256 * 1024;

/** Lower-case hexadecimal sha256; undefined when there is no such file. */
export async function hashFile(path: string, files: Pick<Files, 'open'>): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    await feed(path, hash, files);
    return hash.digest('hex');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Feeds a whole file to a hash; returns the number of its bytes. */
export async function feed(path: string, hash: Hash, files: Pick<Files, 'open'>): Promise<number> {
  await using handle = await files.open(path, 'r');
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer);
    if (bytesRead === 0) return bytes;
    hash.update(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}
