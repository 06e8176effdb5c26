/** Owns the exploration of plans with ledgers, and the mistakes that it must find there. */
import { expect, test } from 'vitest';
import { explore, printViolation } from '../explorer.ts';
import { namesIn } from '../safety-page.ts';
import { readPage } from '../safety-page-file.ts';
import { LARGE_LEDGER_CONFIGURATIONS, LEDGER_CONFIGURATIONS, ledgerRow } from './configurations.ts';
import { LEDGER_INVARIANTS } from './ledger-invariants.ts';
import { LedgersWorld } from './ledgers-world.ts';
import { LEDGER_MISTAKES } from './mistakes.ts';

const REFRESH = 'docs/safety.md is older than the code: npm run safety writes it anew';

test.each(LEDGER_CONFIGURATIONS)('$name', async (configuration) => {
  const exploration = await explore(new LedgersWorld(configuration));
  const { violation } = exploration;
  expect(violation === undefined ? '' : printViolation(violation)).toBe('');
  expect(exploration.isWhole).toBe(true);
  expect(readPage().split('\n'), REFRESH).toContain(ledgerRow(configuration, exploration));
});

test('docs/safety.md names every invariant of plans with ledgers, and no configuration beside these', () => {
  const page = readPage();
  const [, section = ''] = page.split('The same for [plans with ledgers]');
  expect(LEDGER_INVARIANTS.filter(({ name }) => !section.includes(`\`${name}\``))).toEqual([]);
  expect(namesIn(page, 'ledgers')).toEqual(LEDGER_CONFIGURATIONS.map(({ name }) => name));
  expect(namesIn(page, 'large-ledgers')).toEqual(LARGE_LEDGER_CONFIGURATIONS.map(({ name }) => name));
});

test.each(LEDGER_MISTAKES)('$name: found by $breaks', async ({ configuration, leader, breaks }) => {
  const world = new LedgersWorld(configuration, leader);
  const { violation } = await explore({
    initial: world.initial,
    invariants: world.invariants.filter(({ name }) => name === breaks),
    invariantsAtRest: world.invariantsAtRest.filter(({ name }) => name === breaks),
    next: async (state) => await world.next(state),
    isFinal: (state) => world.isFinal(state),
  });
  expect(violation?.invariant).toBe(breaks);
});

test('every invariant is broken by some mistake', () => {
  const broken = new Set(LEDGER_MISTAKES.map(({ breaks }) => breaks));
  expect(LEDGER_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});
