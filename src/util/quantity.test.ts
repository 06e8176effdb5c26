import { expect, test } from 'vitest';
import { parseQuantity } from './quantity.ts';

test.each([
  ['1', 1],
  ['100m', 0.1],
  ['1.5', 1.5],
  ['.5', 0.5],
  ['1.', 1],
  ['64Mi', 67_108_864],
  ['1k', 1000],
  ['1Ki', 1024],
  ['1e3', 1000],
  ['1E3', 1000],
  ['1E', 1e18],
  ['250u', 0.00025],
  ['-1', -1],
])('the quantity %s is %d', (text, expected) => {
  expect(parseQuantity(text)).toBeCloseTo(expected);
});

test.each(['', 'one', '1 Mi', '1mi', '1MiB', '1e', 'Mi', '0x10', '1,5'])(
  'the text "%s" is no quantity',
  (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  },
);
