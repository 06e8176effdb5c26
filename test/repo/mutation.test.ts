/**
 * Tests the files that `npm run mutate` copies before it starts. `npm run mutate` fails if one of them is a link to a
 * folder.
 */
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './tree.ts';

test('no link to a folder is copied', () => {
  const config = readFileSync(join(ROOT, 'stryker.config.json'), 'utf8');
  const { ignorePatterns = [] } = JSON.parse(config) as { ignorePatterns?: string[] };
  const links = globSync('*/**', {
    cwd: ROOT,
    withFileTypes: true,
    exclude: ['node_modules', '.git', 'dist'],
  })
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => join(entry.parentPath, entry.name));
  const folders = links
    .filter((path) => statSync(path).isDirectory())
    .map((path) => path.slice(ROOT.length));
  expect(folders).toContain('charts/refit');
  expect(
    folders.filter(
      (path) => !ignorePatterns.some((pattern) => `${path}/`.startsWith(`${pattern}/`)),
    ),
  ).toEqual([]);
});
