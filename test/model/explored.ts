/** Explores configurations: no invariant breaks, and docs/internals/safety.md has the same counts. */
import { expect, test } from 'vitest';
import type { CONFIGURATIONS } from './configurations.ts';
import { exploreConfiguration } from './explore-configuration.ts';
import { printViolation } from './explorer.ts';
import { configurationRow } from './safety-page.ts';
import { readPage } from './safety-page-file.ts';

export const REFRESH =
  'docs/internals/safety.md is older than the code: npm run safety writes it anew';

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
