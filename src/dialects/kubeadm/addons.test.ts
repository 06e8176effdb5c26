/** Shows how the files of an addon are read, and what is refused with file and field. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readAddon } from './addons.ts';

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'refit-addon-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const named = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name}, labels: { app: x } }\n`;

test('a folder is read in the order of its files, and each object gets the label of the addon', async () => {
  const files = {
    'b.yml': `---\n${named('c')}`,
    'a.yaml': `${named('a')}---\n${named('b')}`,
    'd.json': '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}}',
    'notes.txt': '{{',
  };
  const { objects } = await readAddon({ name: 'demo', path: folderWith(files) });
  expect(objects.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c', 'd']);
  expect(objects[0]?.metadata.labels).toEqual({ app: 'x', 'upgrade.refit.dev/addon': 'demo' });
});

test('a single file is an addon, too, read by the rules of kubectl', async () => {
  const path = join(folderWith({ one: `${named('one')}data: { mode: 0755, on: yes }\n` }), 'one');
  const { objects } = await readAddon({ name: 'demo', path });
  expect(objects[0]).toMatchObject({ data: { mode: 493, true: true } });
});

test.each<[string, Record<string, string>, string]>([
  [
    'a template',
    { 'a.yaml': 'a: {{ .b }}' },
    '/a.yaml: found a template ({{ }}), expected plain objects: render it first',
  ],
  [
    'no name',
    { 'a.yaml': `${named('a')}---\napiVersion: v1\nkind: ConfigMap` },
    '/a.yaml: document 2: metadata.name: found undefined, expected a text',
  ],
  ['a number for a name', { 'a.yaml': named('1') }, '/a.yaml: document 1: metadata.name: found 1, expected a text'],
  ['what is no object', { 'a.yaml': '[1]' }, '/a.yaml: document 1: apiVersion: found undefined, expected a text'],
  ['no YAML', { 'a.yaml': 'a: [' }, '/a.yaml: is not YAML: '],
  ['nothing', { 'a.txt': named('a') }, ': found no object, expected YAML or JSON of Kubernetes'],
])('%s is refused', async (_, files, why) => {
  const path = folderWith(files);
  await expect(readAddon({ name: 'demo', path })).rejects.toThrow(`addon demo: ${path}${why}`);
});

test('a path that leads nowhere is refused', async () => {
  await expect(readAddon({ name: 'demo', path: '/nowhere' })).rejects.toThrow(
    'addon demo: /nowhere: cannot be read: ENOENT',
  );
});
