/** Reads a file that anybody may have written, up to a limit: a path may lead to a device without an end. */
import { createReadStream } from 'node:fs';

/** API servers accept no larger object. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Rejects with what is wrong with the file. */
export async function readBounded(path: string): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of createReadStream(path, { end: MAX_BYTES }) as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
  }
  if (length > MAX_BYTES) throw new Error('the file is larger than 3 MiB; use a smaller one');
  return Buffer.concat(parts).toString('utf8');
}
