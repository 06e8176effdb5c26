/** Tests that reading a file ends at the limit, and that a byte order mark tells how to read the file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readBounded } from './bounded-file.ts';

test('a file up to the limit, one above it, and one without an end', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'refit-bounded-'));
  const path = join(directory, 'file');
  const most = 'ä'.repeat(1.5 * 1024 * 1024);
  await writeFile(path, most);
  expect(await readBounded(path)).toBe(most);
  await writeFile(path, `${most}x`);
  await expect(readBounded(path)).rejects.toThrow(
    'the file is larger than 3 MiB; use a smaller one',
  );
  await expect(readBounded('/dev/zero')).rejects.toThrow('larger than 3 MiB');
  await rm(directory, { recursive: true });
});

test.each<[string, readonly number[], BufferEncoding, string]>([
  ['UTF-8 without a mark', [], 'utf8', 'ä: 1'],
  ['UTF-8 with a mark', [0xef, 0xbb, 0xbf], 'utf8', 'ä: 1'],
  ['UTF-16, as the shell of Windows writes it', [0xff, 0xfe], 'utf16le', 'ä: 1'],
  ['a single byte', [0xff], 'utf8', '\uFFFD'],
])('a file in %s is read as text without a mark', async (_form, mark, encoding, text) => {
  const written = Buffer.concat([
    Buffer.from(mark),
    Buffer.from(text === 'ä: 1' ? text : '', encoding),
  ]);
  const parts = Readable.from([written.subarray(0, 1), written.subarray(1)]);
  expect(await readBounded('a file', parts)).toBe(text);
});

test('a file in UTF-16 with the high bytes first is read as text', async () => {
  const written = Buffer.from('\uFEFFä: 1', 'utf16le').swap16();
  expect(await readBounded('a file', Readable.from([written]))).toBe('ä: 1');
});
