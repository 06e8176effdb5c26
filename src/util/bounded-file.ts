/**
 * Reads untrusted input up to a limit. The limit is needed because an answer may have no end, and a path may name a
 * device.
 */
import { createReadStream } from 'node:fs';
import { type ErrorCode, messageOf, RefitError } from './errors.ts';

/** The most bytes of a file that are read. API servers accept no larger object. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Reads a file as text. It rejects with a message that says what is wrong with the file. */
export async function readBounded(
  path: string,
  stream: AsyncIterable<Buffer> = createReadStream(path),
) {
  return await textIn(stream, MAX_BYTES, 'the file is larger than 3 MiB; use a smaller one');
}

/**
 * Reads a file that a person named. As in kubectl, `-` is standard input. Rejects with a RefitError that has `code`, the
 * path, and `hint` in place of the hint of the code.
 */
export async function readNamed(
  path: string,
  code: ErrorCode = 'REFIT_FILE',
  hint?: string,
): Promise<string> {
  return await readBounded(path, path === '-' ? process.stdin : undefined).catch(
    (cause: unknown) => {
      throw new RefitError(code, `cannot read ${path || "''"}: ${messageOf(cause)}`, {
        cause,
        ...(hint === undefined ? {} : { hint }),
      });
    },
  );
}

/**
 * Reads a stream as text. If there are more than `most` bytes, it stops reading and rejects with a
 * `Problem` whose message is `tooLong`.
 */
export async function textIn(
  stream: AsyncIterable<Buffer>,
  most: number,
  tooLong: string,
  Problem: new (message: string) => Error = Error,
) {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of stream) {
    parts.push(part);
    length += part.length;
    if (length > most) throw new Problem(tooLong);
  }
  return decoded(Buffer.concat(parts));
}

/**
 * Returns the text without its byte order mark, which editors and the shells of Windows write. Only the mark shows that
 * a text is in UTF-16. Other texts are in UTF-8.
 */
function decoded(bytes: Buffer): string {
  return new TextDecoder(encodingOf(bytes)).decode(bytes);
}

function encodingOf(bytes: Buffer): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}
