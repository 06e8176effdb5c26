/** Splits a stream of bytes into the JSON values of its lines. */

const NEWLINE = 10;

/**
 * Yields the values, and reads and copies each byte once. It throws a SyntaxError for a line that
 * is not JSON, is too long, or has no end.
 */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  mostBytes = Infinity,
): AsyncGenerator {
  let parts: Buffer[] = [];
  let buffered = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      const [only] = parts;
      const line = (parts.length === 1 && only ? only : Buffer.concat(parts))
        .toString('utf8')
        .trim();
      parts = [];
      buffered = 0;
      start = end + 1;
      if (line !== '') yield JSON.parse(line) as unknown;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    buffered += chunk.length - start;
    if (buffered > mostBytes) throw new SyntaxError(`a line has more than ${mostBytes} bytes`);
  }
  if (parts.length > 0) throw new SyntaxError('the stream ended inside a line');
}
