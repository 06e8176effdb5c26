/** Carries out the first advice in each situation, with the commands of the product, and lets the world run. */
import { expect, test } from 'vitest';
import { testAdvice } from './followed.ts';
import { ADVICE_TABLE, adviceRows, readTruthPage, withAdvice } from './page.ts';
import { FIRST_TIER, PATHS, SITUATIONS } from './paths.ts';

testAdvice(FIRST_TIER);

test('some path leads into each situation in which Refit gives an advice', () => {
  const reached = new Set(PATHS.map(({ situation }) => situation));
  expect(SITUATIONS.filter((situation) => !reached.has(situation))).toEqual([]);
});

test('docs/internals/truth.md names the dialects in which a test follows the advice about each situation', () => {
  const page = readTruthPage();
  expect(withAdvice(page), `set ${ADVICE_TABLE} to:\n${adviceRows().join('\n')}`).toBe(page);
});
