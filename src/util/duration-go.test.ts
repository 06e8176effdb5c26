/** Tests durations in the format of Go. */
import { expect, test } from 'vitest';
import { formatGoDuration, parseGoDuration } from './duration.ts';

test.each([
  ['90s', 90e9, '1m30s'],
  ['1h', 3600e9, '1h0m0s'],
  ['1.5s', 1.5e9, '1.5s'],
  ['300ms', 300e6, '300ms'],
  ['-30s', -30e9, '-30s'],
  ['0', 0, '0s'],
  ['1h2m3.004s', 3_723_004_000_000, '1h2m3.004s'],
  ['10us', 10_000, '10µs'],
  ['2562047h', 2_562_047 * 3600e9, '2562047h0m0s'],
])('the duration %s', (text, nanoseconds, written) => {
  expect(parseGoDuration(text)).toBe(nanoseconds);
  expect(formatGoDuration(nanoseconds)).toBe(written);
});

// Go counts nanoseconds with 64 bits, which is enough for 292 years.
test.each(['', '5', 'soon', '5 s', 's', '1d', '2562048h', '-99999999h'])(
  '"%s" is no duration',
  (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  },
);
