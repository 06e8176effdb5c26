/** Tests the list of our bundles: what is trusted after somebody changed the list, and the order of the list. */
import * as files from 'node:fs/promises';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadBundles, type PlacedBundle, saveBundles, withBundle } from './bundle-list.ts';

let directory: string;
let list: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-list-'));
  list = join(directory, 'list.json');
});
afterEach(async () => await rm(directory, { recursive: true }));

const bundle = (name: string, more: object = {}): PlacedBundle => ({
  name,
  url: `https://mirror.example/${name}`,
  version: 'v1',
  sha256: 'a'.repeat(64),
  ...more,
});

test('a list is read as it was written', async () => {
  const bundles = [bundle('a.tar'), bundle('b.tar', { validator: '"b"' })];
  await saveBundles(list, { bundles }, files);
  expect(JSON.parse(await readFile(list, 'utf8'))).toEqual({ bundles });
  expect(await loadBundles(list, files)).toEqual({ bundles });
});

test.each<[string, string | undefined]>([
  ['is not there', undefined],
  ['is no JSON', '{'],
  ['is no object', 'null'],
  ['has no bundles', '{}'],
  ['has bundles that are no list', '{"bundles":{"0":{}}}'],
])('a list that %s has no bundle of ours, so nothing is removed', async (_name, text) => {
  if (text !== undefined) await writeFile(list, text);
  expect(await loadBundles(list, files)).toEqual({ bundles: [] });
});

test('a list that cannot be read is an error: a new one would forget what is ours', async () => {
  await expect(loadBundles(directory, files)).rejects.toThrow('EISDIR');
});

test.each<[string, unknown]>([
  ['nothing', null],
  ['a name that leads out of the directory', bundle('../a.tar')],
  ['the name of partial downloads', bundle('.refit-airgap.part')],
  ['no name', { ...bundle('a.tar'), name: undefined }],
  ['no URL', { ...bundle('a.tar'), url: undefined }],
  ['no version', { ...bundle('a.tar'), version: 1 }],
  ['no hash', { ...bundle('a.tar'), sha256: null }],
])('an entry that somebody changed is not ours: %s', async (_name, entry) => {
  await writeFile(list, JSON.stringify({ bundles: [bundle('b.tar'), entry] }));
  expect(await loadBundles(list, files)).toEqual({ bundles: [bundle('b.tar')] });
});

test('a bundle that is placed again is the newest', () => {
  const a = bundle('a.tar');
  const b = bundle('b.tar');
  const again = bundle('a.tar', { version: 'v2' });
  expect(withBundle({ bundles: [a, b] }, again)).toEqual({ bundles: [b, again] });
});
