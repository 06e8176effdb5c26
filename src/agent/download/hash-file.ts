/** Hashes files without loading them into memory. */
import { createHash, type Hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, stat } from 'node:fs/promises';
import type { Files } from '../state/durable-files.ts';
import { unless } from '../state/trusted-path.ts';

/**
 * The number of bytes that are read at once. It is large, because after each piece the agent waits for the event loop,
 * which takes milliseconds on a busy machine.
 */
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Returns the sha256 in lower-case hexadecimal; undefined if there is no such file. */
export async function hashFile(
  path: string,
  files: Pick<Files, 'open'>,
): Promise<string | undefined> {
  await using handle = await unless('ENOENT', files.open(path, 'r'));
  if (handle === undefined) return undefined;
  const hash = createHash('sha256');
  await feed(handle, hash);
  return hash.digest('hex');
}

/** Feeds a whole open file to a hash, and returns the number of its bytes. The position of the file does not change. */
export async function feed(handle: FileHandle, hash: Hash): Promise<number> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let bytes = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, bytes);
    if (bytesRead === 0) return bytes;
    hash.update(buffer.subarray(0, bytesRead));
    bytes += bytesRead;
  }
}

/**
 * Returns a text that changes with every write to the file; undefined if there is no such file. The last part of the
 * text also changes when the file gets a new name.
 */
export async function stampOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found && stampIn(found);
}

/** Returns the stamp of a file whose status was read already. */
export function stampIn({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}
