/** Tests how Refit names files of its repository. */
import { expect, test } from 'vitest';
import { inRepository } from './home.ts';

test.each([
  ['', 'docs/faq.md in the repository of Refit'],
  ['https://example.com/refit', 'docs/faq.md of https://example.com/refit'],
])('with the homepage "%s"', (home, told) => {
  expect(inRepository('docs/faq.md', home)).toBe(told);
});
