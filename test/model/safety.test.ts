/** Tests that docs/internals/safety.md contains everything that is explored, and the code that ensures each invariant. */
import { expect, test } from 'vitest';
import { CONFIGURATIONS } from './configurations.ts';
import { REFRESH } from './explored.ts';
import { INVARIANTS } from './invariants.ts';
import { LARGE } from './large-configurations.ts';
import { invariantRows, namesIn, withTable } from './safety-page.ts';
import { readPage } from './safety-page-file.ts';

test('docs/internals/safety.md names every invariant, and exactly these configurations', () => {
  const page = readPage();
  expect(withTable(page, 'invariants', invariantRows()), REFRESH).toBe(page);
  expect(namesIn(page, 'configurations')).toEqual(CONFIGURATIONS.map(({ name }) => name));
  expect(namesIn(page, 'large-configurations')).toEqual(LARGE.map(({ name }) => name));
});

test('docs/internals/safety.md says what upholds every invariant in each dialect', () => {
  const section =
    readPage()
      .split('\n## ')
      .find((text) => text.startsWith('What upholds them in each dialect')) ?? '';
  const [head = [], ...rows] = section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map(cellsOf);
  expect(head.slice(1)).toEqual(['`autopilot`', '`cattle`', '`kubeadm`', '`capi`']);
  expect(rows.map(([name]) => name)).toEqual([
    ...INVARIANTS.map(({ name }) => `\`${name}\``),
    '`every-run-ends`',
  ]);
  expect(rows.filter((cells) => cells.length !== head.length || cells.includes(''))).toEqual([]);
});

function cellsOf(row: string): string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
