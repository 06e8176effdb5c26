/**
 * Tests that the journal is read from the disk as it was written, and that the agent stops if it cannot read the
 * journal.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RefitError } from '../../util/errors.ts';
import type { Journal } from '../journal.ts';
import { IDLE } from '../journal.ts';
import { loadJournal, saveJournal } from './journal-file.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-journal-'));
});
afterEach(async () => await rm(directory, { recursive: true }));

test('what was saved is loaded', async () => {
  const path = join(directory, 'journal.json');
  expect(await loadJournal(path)).toEqual(IDLE);
  const command = { id: 0, kind: 'k0supdate', url: 'http://d/k0s', version: 'v2' } as const;
  const original = { pid: 1, started: 'boot/1', parent: 1 };
  const work = {
    signal: { planId: 'p', created: 'c', command },
    binary: '/k0s',
    from: 'v1',
    original,
  };
  const journal: Journal = {
    phase: 'restarting',
    work,
    process: original,
    since: 5,
    spent: { Downloading: 7 },
  };
  await saveJournal(path, journal);
  expect(await loadJournal(path)).toEqual(journal);
  await saveJournal(path, IDLE);
  expect(await loadJournal(path)).toEqual(IDLE);
});

const REFUSED = [
  '',
  '{',
  '[]',
  '{"format":3,"journal":{"phase":"idle"}}',
  '{"format":1,"journal":{"phase":"ready"}}',
  '{"format":1}',
];

test.each(REFUSED)('%j is refused', async (text) => {
  const path = join(directory, 'journal.json');
  await writeFile(path, text);
  await expect(loadJournal(path)).rejects.toThrow(RefitError);
});

test('an idle journal of the earlier format is read', async () => {
  const path = join(directory, 'journal.json');
  await writeFile(path, '{"format":1,"journal":{"phase":"idle"}}');
  expect(await loadJournal(path)).toEqual(IDLE);
});

test('a journal that cannot be read is not taken for none', async () => {
  await expect(loadJournal(directory)).rejects.toMatchObject({
    code: 'REFIT_FILE',
    message: expect.stringContaining('cannot read'),
  });
});
