/**
 * Tests that a download does not fill a disk again and again: the number of trials is limited, whatever the time
 * between the trials.
 */
import { expect, test } from 'vitest';
import { buildLog } from '../../../test/support/builders/logs.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { silentLogger } from '../../util/log.ts';
import { diskRoom, whenThereIsRoom } from './disk-room.ts';

const DAY_MS = 24 * 3_600_000;

async function play(
  work: () => Promise<void>,
): Promise<{ error: unknown; works: number; discards: number; ms: number }> {
  const clock = new FakeClock();
  const { signal: abort } = new AbortController();
  let works = 0;
  let discards = 0;
  const trial = async (): Promise<void> => {
    works++;
    await work();
  };
  const discard = async (): Promise<void> => await Promise.resolve(void discards++);
  const tools = { clock, random: () => 1, log: silentLogger, abort };
  const began = clock.monotonic();
  let error: unknown;
  const done = whenThereIsRoom(trial, discard, { totalMs: DAY_MS }, tools).catch(
    (thrown: unknown) => {
      error = thrown;
    },
  );
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
    statfs: async () =>
      await Promise.resolve({ bavail: looks++ % 3 === 0 ? 0 : 1_000, blocks: 1_000, bsize: 1 }),
  };
  const { error, works } = await play(async () => {
    looks = 0;
    await diskRoom('/', 100, files as never).require(500);
  });
  expect(error).toMatchObject({ message: 'the disk was full 10 times' });
  expect(works).toBe(10);
});

const KB = 1_000;
const MIB = 1024 * 1024;

/**
 * Returns a file system with `size` bytes, of which `free` bytes are free. `looks` counts how often the free space was
 * read.
 */
function disk(free: number, size: number) {
  const state = { free, looks: 0 };
  const statfs = async () => {
    state.looks++;
    return await Promise.resolve({ bavail: state.free / 4, blocks: size / 4, bsize: 4 });
  };
  return { state, files: { statfs } as never };
}

test.each<[string, number, number, number, string | undefined]>([
  ['what fits beside the reserve exactly', 600, 100, 500, undefined],
  [
    'one byte too many for now',
    599,
    100,
    500,
    '/data has 599 bytes free, the download needs 500 and the reserve 100 (--disk-reserve)',
  ],
  [
    'as much as it has in all',
    599,
    500,
    500,
    '/data has 599 bytes free, the download needs 500 and the reserve 500 (--disk-reserve)',
  ],
  [
    'more than there will ever be',
    599,
    501,
    500,
    '/data has 599 bytes free, the download needs 500 and the reserve 501 (--disk-reserve); the whole file system has only 1000',
  ],
])(
  'a disk of 1000 bytes accepts a download only if it fits: %s',
  async (_name, free, reserve, bytes, refusal) => {
    const room = diskRoom('/data', reserve, disk(free, KB).files);
    const found = await room.require(bytes).catch((error: Error) => error.message);
    expect(found).toBe(refusal);
  },
);

test.each([
  [
    'that does not say its size',
    async () => await Promise.resolve({ bavail: 0, blocks: 0, bsize: 4 }),
  ],
  ['that cannot be asked', async () => await Promise.reject(new Error('ENOSYS'))],
])('a file system %s is written to', async (_name, statfs) => {
  await diskRoom('/data', 100, { statfs } as never).require(KB);
});

test('the free space is looked at after each 4 MiB, and an endless body ends there', async () => {
  const { state, files } = disk(9 * MIB, 100 * MIB);
  const room = diskRoom('/data', 0, files);
  await room.count(4 * MIB - 1);
  expect(state.looks).toBe(0);
  await room.count(1);
  await room.count(4 * MIB - 1);
  expect(state.looks).toBe(1);
  state.free = 3 * MIB;
  await expect(room.count(1)).rejects.toThrow(`needs ${4 * MIB} and`);
});

/** Waits for room. `work` decides what happens in each trial. */
async function waitFor(work: (trial: number, leftMs: number) => Promise<void>, totalMs = DAY_MS) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = buildLog(lines, 'debug');
  const { signal: abort } = new AbortController();
  const trials: { at: number; leftMs: number }[] = [];
  let discards = 0;
  const trial = async ({ totalMs: leftMs }: { readonly totalMs: number }): Promise<void> => {
    trials.push({ at: clock.monotonic(), leftMs });
    await work(trials.length, leftMs);
  };
  const discard = async (): Promise<void> => await Promise.resolve(void discards++);
  const done = whenThereIsRoom(trial, discard, { totalMs }, { clock, random: () => 1, log, abort });
  const error: unknown = await clock.runUntil(
    done.then(
      () => undefined,
      (thrown: unknown) => thrown,
    ),
  );
  return { error, trials, discards, lines, ms: clock.monotonic() };
}

const noSpace = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });

test('an error that is no lack of room ends the download at once, and removes nothing', async () => {
  const broken = new Error('404');
  const { error, discards, trials } = await waitFor(async () => await Promise.reject(broken));
  expect([error, discards, trials.length]).toEqual([broken, 0, 1]);
});

test('a download that lacked room is told the time that is left, and the log says why it waits', async () => {
  const { error, trials, discards, lines } = await waitFor(async (trial) => {
    if (trial === 1) throw noSpace;
    await Promise.resolve();
  });
  expect([error, discards, trials.length]).toEqual([undefined, 1, 2]);
  expect(trials[0]).toEqual({ at: 0, leftMs: DAY_MS });
  expect(trials[1]?.leftMs).toBe(DAY_MS - (trials[1]?.at ?? 0));
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    {
      time: expect.any(String) as string,
      level: 'warn',
      msg: 'the disk is full: the agent removed the download, and tries again when there is room',
      reason: 'ENOSPC: no space left',
    },
  ]);
});

test('a disk that stays full ends the download before its time is over, with the reason', async () => {
  const { error, ms } = await waitFor(async () => await Promise.reject(noSpace), 5 * 60_000);
  expect(error).toMatchObject({ message: 'the disk stayed full', cause: noSpace });
  expect(ms).toBeLessThanOrEqual(5 * 60_000);
});

test('the next trial waits until the whole download fits, what was removed of it included', async () => {
  const { state, files } = disk(KB, 100 * KB);
  let looksWhenTried = 0;
  const { error, trials } = await waitFor(async (trial) => {
    if (trial === 1) {
      const room = diskRoom('/data', 0, files, 3 * KB);
      await room.require(2 * KB).catch((thrown: unknown) => {
        state.free = 4 * KB;
        // This is enough for the rest of the download, but not for the whole download. More bytes become free only
        // after some checks.
        const grow = (): void => {
          if (state.looks < 6) return void setImmediate(grow);
          state.free = 5 * KB;
        };
        grow();
        throw thrown;
      });
    }
    looksWhenTried = state.looks;
  });
  expect([error, trials.length]).toEqual([undefined, 2]);
  expect(looksWhenTried).toBeGreaterThanOrEqual(7);
});

test('what the disk has taken of the download counts as part of the whole', async () => {
  const { state, files } = disk(8 * MIB, 100 * MIB);
  const room = diskRoom('/data', 0, files);
  await room.count(4 * MIB);
  state.free = 1 * MIB;
  const error = (await room.require(2 * MIB).catch((thrown: unknown) => thrown)) as {
    hasRoom: () => Promise<boolean>;
  };
  state.free = 6 * MIB - 4;
  expect(await error.hasRoom()).toBe(false);
  state.free = 6 * MIB;
  expect(await error.hasRoom()).toBe(true);
});
