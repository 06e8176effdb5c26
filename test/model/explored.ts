/**
 * Explores configurations. Tests that no invariant is violated, and that docs/internals/safety.md contains the same
 * counts.
 */
import { expect, test } from 'vitest';
import type { CONFIGURATIONS } from './configurations.ts';
import { exploreConfiguration } from './explore-configuration.ts';
import { printViolation } from './explorer.ts';
import { configurationRow } from './safety-page.ts';
import { readPage } from './safety-page-file.ts';

export const REFRESH =
  'docs/internals/safety.md is older than the code: npm run safety writes it anew';

/**
 * The most states, as counted in docs/internals/safety.md, of a configuration in the first tier. Configurations with
 * more states belong to the second tier.
 */
const MOST_STATES_OF_FIRST_TIER = 1_000;
/**
 * Configurations with few states that belong to the second tier, because the leaders decide from very many combinations
 * of old views.
 */
const WITH_MANY_VIEWS = [
  '1 controller, 1 worker, 2 commands, no fault',
  '2 workers, a Job before the drain of each worker, 2 at once',
];

/**
 * Returns true if the first tier explores the configuration. A configuration that is not yet on the page belongs to the
 * first tier.
 */
export function isOfFirstTier({ name }: (typeof CONFIGURATIONS)[number]): boolean {
  if (WITH_MANY_VIEWS.includes(name)) return false;
  const row = readPage()
    .split('\n')
    .find((line) => line.startsWith(`| ${name} |`));
  const states = row?.split('|').at(-3) ?? '0';
  return Number(states.replaceAll(',', '')) <= MOST_STATES_OF_FIRST_TIER;
}

export function testConfigurations(configurations: typeof CONFIGURATIONS): void {
  test.each(configurations)('$name', async (configuration) => {
    const exploration = await exploreConfiguration(configuration);
    const { violation } = exploration;
    expect(violation === undefined ? '' : printViolation(violation)).toBe('');
    expect(exploration.isWhole).toBe(true);
    const row = configurationRow(configuration, exploration);
    console.log(row);
    expect(readPage().split('\n'), REFRESH).toContain(row);
  });
}
