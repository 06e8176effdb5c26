/** Tests how several sentences are combined in one line. */
import { expect, test } from 'vitest';
import { listedSentences } from './phrases.ts';

test.each([
  [['a is gone'], 'a is gone'],
  [['a is gone', 'b is gone', 'c is late'], 'a is gone; the same holds for b; c is late'],
  [['a is gone', 'a is gone'], 'a is gone'],
  [['a: no room', 'b: no room'], 'a: no room; the same holds for b'],
  [['a is gone', 'b is late', 'c is new'], 'a is gone; b is late; and 1 more'],
  [
    ['a is gone', 'b is gone', 'c is gone', 'd is gone'],
    'a is gone; the same holds for b, c and 1 more',
  ],
  [[], ''],
])('%j', (sentences, line) => {
  expect(listedSentences(sentences, 2)).toBe(line);
});
