/** Tests when a preview of a user starts, and when the user has to wait. */
import { expect, test } from 'vitest';
import { FakeClock, settle } from '../../../test/support/clock/fake-clock.ts';
import { createPreviewTurns } from './preview-turns.ts';

const DONE = { isDone: true, lines: ['done'] };

/** Returns previews that note their names when they start. Each takes the given milliseconds. */
function startTurns() {
  const clock = new FakeClock();
  const turns = createPreviewTurns(clock);
  const started: string[] = [];
  const preview = async (user: string, ms = 0) =>
    await turns(user, async () => {
      started.push(user);
      await new Promise<void>((resolve) => clock.schedule(ms, resolve));
      return DONE;
    });
  return { clock, turns, started, preview };
}

test('a second preview of a user is refused while the first one runs, with a sentence that says why', async () => {
  const { clock, started, preview } = startTurns();
  const first = preview('ada', 1000);
  expect(await preview('ada')).toEqual({
    isDone: false,
    lines: ['Your last preview has not ended yet: wait until it has ended, and try again.'],
  });
  await clock.advance(1000);
  expect(await first).toEqual(DONE);
  expect(started).toEqual(['ada']);
});

test('a preview of another user starts as soon as the running one has ended', async () => {
  const { clock, started, preview } = startTurns();
  const all = [preview('ada', 1000), preview('bob')];
  await clock.advance(999);
  expect(started).toEqual(['ada']);
  await clock.advance(1);
  expect(started).toEqual(['ada', 'bob']);
  await clock.advance(0);
  expect(await Promise.all(all)).toEqual([DONE, DONE]);
});

test('the next preview of a user waits three times as long as the last one took', async () => {
  const { clock, started, preview } = startTurns();
  await clock.advance(5000);
  const first = preview('ada', 2000);
  await clock.advance(2000);
  await first;
  const second = preview('ada');
  await clock.advance(5999);
  expect(started).toEqual(['ada']);
  await clock.advance(1);
  expect(started).toEqual(['ada', 'ada']);
  expect(await second).toEqual(DONE);
});

test('a user waits at most ten seconds after a preview', async () => {
  const { clock, started, preview } = startTurns();
  const first = preview('ada', 50_000);
  await clock.advance(50_000);
  await first;
  void preview('ada');
  await clock.advance(9999);
  expect(started).toHaveLength(1);
  await clock.advance(1);
  expect(started).toHaveLength(2);
});

test('a user who waits does not delay another user', async () => {
  const { clock, started, preview } = startTurns();
  const first = preview('ada', 2000);
  await clock.advance(2000);
  await first;
  void preview('ada');
  void preview('bob');
  await settle();
  expect(started).toEqual(['ada', 'bob']);
});

test('the first preview of a user, and one after the pause, start without a timer', async () => {
  const { clock, preview } = startTurns();
  const first = preview('ada', 1000);
  await settle();
  expect(clock.pending).toBe(1);
  await clock.advance(1000);
  await first;
  await clock.advance(3000);
  void preview('ada', 1000);
  await settle();
  // The only timer is the one of the preview itself.
  expect(clock.pending).toBe(1);
});

test('a preview that fails ends the turn, too, and the pause applies', async () => {
  const { clock, turns, started, preview } = startTurns();
  const failing = turns('ada', async () => {
    await new Promise<void>((resolve) => clock.schedule(1000, resolve));
    throw new Error('the API server is gone');
  });
  const seen = expect(failing).rejects.toThrow('the API server is gone');
  await clock.advance(1000);
  await seen;
  void preview('ada');
  await clock.advance(2999);
  expect(started).toEqual([]);
  await clock.advance(1);
  expect(started).toEqual(['ada']);
});

test('the pauses of 1024 users are known, and the user with the oldest preview is forgotten first', async () => {
  const { clock, started, preview } = startTurns();
  const previewOnce = async (user: string, ms: number): Promise<void> => {
    const done = preview(user, ms);
    await clock.advance(ms);
    await done;
  };
  await previewOnce('ada', 1000);
  await previewOnce('bob', 1000);
  for (let user = 0; user < 1022; user++) await previewOnce(`user ${user}`, 0);
  const again = preview('ada', 500);
  await settle();
  expect(started.at(-1)).toBe('user 1021');
  await clock.advance(2500);
  await again;
  // The preview of bob is now the oldest. It ended less than three seconds ago, so bob would have to wait.
  await previewOnce('carol', 0);
  void preview('ada');
  void preview('bob');
  await settle();
  expect(started.slice(-2)).toEqual(['carol', 'bob']);
});
