/** Splits a stream of bytes into the JSON values of its lines. */

const NEWLINE = 10;

/** Reads and copies each byte once. Throws a SyntaxError for a line that is not JSON, too long, or cut off by the end. */
export async function* jsonLines(
  chunks: AsyncIterable<Buffer>,
  mostBytes = Infinity,
): AsyncGenerator {
  let parts: Buffer[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      const [only] = parts;
      const line = (parts.length === 1 && only ? only : Buffer.concat(parts))
        .toString('utf8')
        .trim();
      parts = [];
      held = 0;
      start = end + 1;
      if (line !== '') yield JSON.parse(line) as unknown;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    held += chunk.length - start;
    if (held > mostBytes) throw new SyntaxError(`a line has more than ${mostBytes} bytes`);
  }
  if (parts.length > 0) throw new SyntaxError('the stream ended inside a line');
}
