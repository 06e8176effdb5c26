/** Tests how the bytes of a watch become values, wherever the network splits them. */

import { Readable } from 'node:stream';
import { array, assert, asyncProperty, jsonValue, nat } from 'fast-check';
import { expect, test, vi } from 'vitest';
import { jsonLines } from './json-lines.ts';

async function read(chunks: readonly Buffer[]): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of jsonLines(Readable.from(chunks))) values.push(value);
  return values;
}

test('every way to cut the bytes gives the same values', async () => {
  await assert(
    asyncProperty(array(jsonValue()), array(nat(40)), async (values, sizes) => {
      const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
      const chunks: Buffer[] = [];
      let start = 0;
      for (const size of sizes) {
        chunks.push(bytes.subarray(start, start + size));
        start += size;
      }
      chunks.push(bytes.subarray(start));
      expect(await read(chunks)).toEqual(
        values.map((value) => JSON.parse(JSON.stringify(value)) as unknown),
      );
    }),
  );
});

test('a character may be cut in two', async () => {
  const bytes = Buffer.from('{"name":"Überfällig 🚢"}\n');
  expect(await read([...bytes].map((byte) => Buffer.from([byte])))).toEqual([
    { name: 'Überfällig 🚢' },
  ]);
});

test.each([
  ['half a line at the end', ['{"a":1}\n{"b"']],
  ['a line without its end', ['{"a":1}']],
  ['a line that is no JSON', ['oops\n']],
])('%s: the stream is broken', async (_name, chunks) => {
  await expect(read(chunks.map((chunk) => Buffer.from(chunk)))).rejects.toThrow(SyntaxError);
});

test('a line in many chunks is copied once, not again with each of them', async () => {
  const concat = vi.spyOn(Buffer, 'concat');
  const chunks = Array.from({ length: 2_000 }, () => Buffer.alloc(1_024, 'x'));
  await read([Buffer.from('"'), ...chunks, Buffer.from('"\n')]);
  const copied = concat.mock.calls.flatMap(([parts]) => parts.map(({ length }) => length));
  concat.mockRestore();
  expect(copied.reduce((sum, length) => sum + length)).toBe(2_000 * 1_024 + 2);
});
