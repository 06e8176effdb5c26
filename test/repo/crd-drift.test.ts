/** Tests that the generated files in the tree are what `npm run generate` writes now. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generatedFiles } from '../../tools/generate.ts';
import { ROOT } from './tree.ts';

const generated = await generatedFiles();

test.each([...generated.keys()])('%s is up to date', (path) => {
  expect(readFileSync(`${ROOT}${path}`, 'utf8')).toBe(generated.get(path));
});

test('deploy/crds holds nothing else', () => {
  const made = [...generated.keys()].filter((path) => path.startsWith('deploy/crds/'));
  expect(made.length).toBeGreaterThan(0);
  expect(new Set(globSync('deploy/crds/*', { cwd: ROOT }))).toEqual(new Set(made));
});
