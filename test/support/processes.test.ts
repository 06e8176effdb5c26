/** Tests that values from /proc are read correctly, on sample texts and on the process of the test itself. */
import { expect, test } from 'vitest';
import { mebibytes, memoryOf } from './processes.ts';

test.each([
  ['a field', 'VmHWM:\t    2048 kB\nVmRSS:\t  1536 kB\n', 'VmRSS', 1.5],
  [
    'a field whose name another ends with',
    'NotPrivate_Dirty: 9 kB\nPrivate_Dirty:  512 kB\n',
    'Private_Dirty',
    0.5,
  ],
  ['a field that is missing', 'VmHWM:\t    2048 kB\n', 'VmRSS', Number.NaN],
])('%s', (_, text, field, wanted) => {
  expect(mebibytes(text, field)).toBe(wanted);
});

test('the parts of a process fit each other', async () => {
  const { rss, peak, privateDirty } = await memoryOf(process.pid);
  expect(peak).toBeGreaterThanOrEqual(rss);
  expect(rss).toBeGreaterThan(privateDirty);
  expect(privateDirty).toBeGreaterThan(0);
});
