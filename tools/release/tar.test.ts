/**
 * Tests that the tar of the system reads the archives that `tar` writes, and that the same content gives the same
 * bytes.
 */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { type TarEntry, tar } from './tar.ts';

const DEEP = `${'a-long-name/'.repeat(12)}file`;
const ENTRIES: readonly TarEntry[] = [
  { path: 'tmp/', mode: 0o1777 },
  { path: 'tmp/run', mode: 0o755, content: Buffer.from('x'.repeat(513)) },
  { path: 'lib', mode: 0o777, link: 'usr/lib' },
  { path: DEEP, mode: 0o600, content: Buffer.alloc(0) },
];

test('tar lists modes, owners, sizes, times and links', () => {
  const args = ['--list', '--verbose', '--numeric-owner', '--full-time', '--utc'];
  const listed = execFileSync('tar', args, {
    input: tar(ENTRIES, 86_400),
    encoding: 'utf8',
    env: { TZ: 'UTC', PATH: process.env['PATH'] },
  });
  expect(
    listed
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
  ).toEqual([
    'drwxrwxrwt 0/0 0 1970-01-02 00:00:00 tmp/',
    '-rwxr-xr-x 0/0 513 1970-01-02 00:00:00 tmp/run',
    'lrwxrwxrwx 0/0 0 1970-01-02 00:00:00 lib -> usr/lib',
    `-rw------- 0/0 0 1970-01-02 00:00:00 ${DEEP}`,
  ]);
});

test('the same content gives the same bytes, another time others', () => {
  expect(tar(ENTRIES, 5).equals(tar(ENTRIES, 5))).toBe(true);
  expect(tar(ENTRIES, 5).equals(tar(ENTRIES, 6))).toBe(false);
});

test('a path that does not fit is refused', () => {
  expect(() => tar([{ path: 'x'.repeat(300), mode: 0o644 }], 0)).toThrow(
    'is too long for a tar archive',
  );
});
