/** Owns the proof that a disk is not filled again and again: by the number of trials, at any time between them. */
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/faults/fake-clock.ts';
import { silentLogger } from '../../util/log.ts';
import { DiskRoom, whenThereIsRoom } from './disk-room.ts';

const DAY_MS = 24 * 3_600_000;

async function play(
  work: () => Promise<void>,
): Promise<{ error: unknown; works: number; discards: number; ms: number }> {
  const clock = new FakeClock();
  const { signal: abort } = new AbortController();
  let [works, discards] = [0, 0];
  const trial = async (): Promise<void> => {
    works++;
    await work();
  };
  const discard = async (): Promise<void> => await Promise.resolve(void discards++);
  const tools = { clock, random: () => 1, log: silentLogger, abort };
  const began = clock.monotonic();
  let error: unknown;
  const done = whenThereIsRoom(trial, discard, DAY_MS, tools).catch((thrown: unknown) => (error = thrown));
  await clock.runUntil(done);
  return { error, works, discards, ms: clock.monotonic() - began };
}

test('a quota without room ends the download after ten trials, each of them removed', async () => {
  const full = Object.assign(new Error('quota'), { code: 'EDQUOT' });
  const { error, works, discards, ms } = await play(async () => await Promise.reject(full));
  expect(error).toMatchObject({ message: 'the disk was full 10 times', cause: full });
  expect([works, discards]).toEqual([10, 10]);
  expect(ms).toBeLessThan(3_600_000);
});

test('room that comes and goes cannot have a server without a length fill the disk for ever', async () => {
  let looks = 0;
  const files = {
    statfs: async () => await Promise.resolve({ bavail: looks++ % 3 === 0 ? 0 : 1_000, blocks: 1_000, bsize: 1 }),
  };
  const { error, works } = await play(async () => {
    looks = 0;
    await new DiskRoom('/', 100, files as never).require(500);
  });
  expect(error).toMatchObject({ message: 'the disk was full 10 times' });
  expect(works).toBe(10);
});
