/** Tests the journal on a real disk that has no free space. Only root can mount such a disk. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { keepSpare, loadJournal, saveJournal } from '../../../src/agent/state/journal-file.ts';
import { journalAt } from '../../support/builders/agent-situations.ts';
import { testUnless } from '../../support/left-out.ts';
import { SmallDisk } from './small-disk.ts';

const isRoot = process.getuid?.() === 0;
const testOnDisk = testUnless(isRoot ? undefined : 'only root may mount a small disk');

testOnDisk(
  'journals are saved on a disk without a free byte, and the spare file comes back with room',
  async () => {
    await using disk = await SmallDisk.mount(16);
    const path = join(disk.path, 'journal.json');
    const spare = async (): Promise<number | undefined> =>
      (await lstat(`${path}.spare`).catch(() => undefined))?.size;
    await keepSpare(path);
    expect(await spare()).toBe(64 * 1024);
    const empty = await disk.fill(0);
    expect(await disk.free()).toBeLessThan(4096);
    for (let attempt = 0; attempt < 20; attempt++) {
      const journal = journalAt('ready', { spent: { Downloading: attempt } });
      await saveJournal(path, journal);
      expect(await loadJournal(path)).toEqual(journal);
    }
    expect(await spare()).toBeUndefined();
    await empty();
    await saveJournal(path, journalAt('kept'));
    expect(await spare()).toBe(64 * 1024);
    expect((await readdir(disk.path)).toSorted()).toEqual([
      'journal.json',
      'journal.json.spare',
      'lost+found',
    ]);
  },
);
