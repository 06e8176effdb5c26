/** The table of docs/internals/truth.md about the advice that tests follow. */
import { row, withTable } from '../../model/safety-page.ts';
import { ALL_LABS } from '../labs/all.ts';
import { readTruthPage } from '../model-page.ts';
import { PATHS, SITUATIONS } from './paths.ts';

export { readTruthPage };

/** The name of the table. */
export const ADVICE_TABLE = 'advice';

/** Returns one row for each situation: in which dialects a test follows the first advice about it. */
export function adviceRows(): string[] {
  const dialects = ALL_LABS.map(({ dialect }) => dialect);
  return [
    row('situation', ...dialects),
    `|---|${dialects.map(() => '---|').join('')}`,
    ...SITUATIONS.map((situation) =>
      row(
        `\`${situation}\``,
        ...dialects.map((dialect) => {
          const count = PATHS.filter(
            (path) => path.situation === situation && path.lab.dialect === dialect,
          ).length;
          return count === 0 ? '' : String(count);
        }),
      ),
    ),
  ];
}

/** Returns the page with the table as the tests are now. */
export function withAdvice(page: string): string {
  return withTable(page, ADVICE_TABLE, adviceRows());
}
