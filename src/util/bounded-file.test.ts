/** Tests that reading a file ends at the limit. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
