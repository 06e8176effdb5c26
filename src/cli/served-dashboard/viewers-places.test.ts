/** Tests which viewers get a place, and what a viewer sees whose lists fail. */
import { expect, test } from 'vitest';
import { startViewers } from '../../../test/support/builders/viewers.ts';

const NO_PLACE = 'The plans are already followed for too many viewers: try again later.';

test('a fifth page with another token of one user is refused until one of the others is closed', async () => {
  const { clock, open, watches } = await startViewers();
  const pages: Awaited<ReturnType<typeof open>>[] = [];
  for (const token of ['eve-1', 'eve-2', 'eve-3', 'eve-4']) pages.push(await open(token));
  await expect.poll(() => watches).toHaveLength(4);
  expect(await open('eve-5')).toMatchObject({ isFollowed: false });
  expect(watches).toHaveLength(4);
  await clock.advance(5000);
  // Both pages are closed. The second viewer was used later than the third one, so the third one ends.
  pages[1]?.viewer.follow();
  await pages[1]?.close();
  await pages[2]?.close();
  expect(await open('eve-5')).toMatchObject({ isFollowed: true });
  await expect.poll(() => watches).toHaveLength(4);
  expect(pages[1]?.viewer.follow()).toBe(true);
  await expect.poll(() => watches).toHaveLength(4);
});

test('a viewer without an open page keeps the place while the user has fewer than four', async () => {
  const { open, watches, viewers } = await startViewers();
  const first = await open('eve-1');
  await expect.poll(() => watches).toHaveLength(1);
  await first.close();
  for (const token of ['eve-2', 'eve-3', 'eve-4']) await open(token);
  await expect.poll(() => watches).toHaveLength(4);
  await viewers.find('probe-1');
  expect(watches).toHaveLength(4);
});

const USERS = ['ada', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace', 'heidi'];

test('a ninth user with the same number of places as the others gets none', async () => {
  const { open, missingIn } = await startViewers();
  for (const user of USERS) {
    const { feed } = await open(`${user}-1`);
    expect(missingIn(feed.last)).toEqual([]);
  }
  expect(await open('ivan-1')).toMatchObject({ isFollowed: false });
});

test('a ninth user gets the place of the viewer who closed the page, and this viewer has no state any more', async () => {
  const { clock, open, missingIn, watches } = await startViewers();
  const pages: Awaited<ReturnType<typeof open>>[] = [];
  for (const user of USERS) {
    pages.push(await open(`${user}-1`));
    await clock.advance(1);
  }
  await expect.poll(() => watches).toHaveLength(8);
  // The second viewer is the least recently used one of the two without a page.
  await pages[1]?.close();
  await pages[3]?.close();
  const ninth = await open('ivan-1');
  expect(ninth.isFollowed).toBe(true);
  await expect.poll(() => missingIn(ninth.feed.last)).toEqual([]);
  expect(pages.map(({ feed }) => feed.last === '')).toEqual(USERS.map((user) => user === 'bob'));
  await expect
    .poll(() => watches.toSorted())
    .toEqual([...USERS, 'ivan'].filter((user) => user !== 'bob'));
});

test('a new user gets a place of the user who has the most, and this page is loaded again', async () => {
  const { open, missingIn, watches } = await startViewers();
  const tokens = ['dave-1', 'ada-1', 'ada-2', 'ada-3', 'bob-1', 'bob-2', 'carol-1', 'carol-2'];
  const pages: Awaited<ReturnType<typeof open>>[] = [];
  for (const token of tokens) pages.push(await open(token));
  await expect.poll(() => watches).toHaveLength(8);
  const erin = await open('erin-1');
  await expect.poll(() => missingIn(erin.feed.last)).toEqual([]);
  expect(tokens.filter((_, index) => pages[index]?.feed.last === '')).toEqual(['ada-1']);
  await expect.poll(() => pages[1]?.seen.at(-1)).toBe('event: end\ndata:\n\n');
  // The user dave has one place, and no user has more than two, so a second place would be one too many.
  expect(await open('dave-2')).toMatchObject({ isFollowed: false });
});

test('the loser of a race for the last place sees why it has none, and gets one that becomes free', async () => {
  const { clock, open, show, missingIn, viewerOf } = await startViewers();
  const first = await open('ada-1');
  for (const user of USERS.slice(1, 7)) await open(`${user}-1`);
  const racers = [await viewerOf('heidi-1'), await viewerOf('ivan-1')];
  // Both may try, because one place is free now.
  expect(racers.map((viewer) => viewer.follow())).toEqual([true, true]);
  for (const viewer of racers) show(viewer);
  const missing = () => racers.map(({ feed }) => missingIn(feed.last)?.join());
  await expect.poll(() => new Set(missing())).toEqual(new Set(['', NO_PLACE]));
  await first.close();
  await clock.advance(1000);
  await expect.poll(missing).toEqual(['', '']);
  expect(first.feed.last).toBe('');
});

test('a cluster without a kind of plan is said in one sentence, and the lists are tried again after a second', async () => {
  const { clock, state, open, missingIn } = await startViewers();
  state.hasKinds = false;
  const { feed } = await open('ada-1');
  expect(missingIn(feed.last)).toEqual(['The cluster has no kind of plan that Refit knows.']);
  state.hasKinds = true;
  await clock.advance(1000);
  await expect.poll(() => missingIn(feed.last)).toEqual([]);
});

test('a viewer without the right to list plans sees this right, and no other sentence', async () => {
  const { open, missingIn, refused } = await startViewers();
  refused.set('eve', [403, 'Forbidden']);
  const { feed } = await open('eve-1');
  expect(missingIn(feed.last)).toEqual(['Forbidden as scripted']);
});

test('lists that fail are tried again after pauses that grow, and the viewer sees the reason meanwhile', async () => {
  const { clock, open, missingIn, refused, lists, viewers } = await startViewers();
  refused.set('ada', [400, 'BadRequest']);
  const { feed, seen } = await open('ada-1');
  expect(missingIn(feed.last)).toEqual(['BadRequest as scripted']);
  const tries = lists.length;
  await clock.advance(999);
  await viewers.find('probe-1');
  expect(lists).toHaveLength(tries);
  await clock.advance(1);
  await expect.poll(() => lists).toHaveLength(2 * tries);
  // The time moves only after the second try has failed, and its pause has begun.
  await expect.poll(() => seen).toHaveLength(2);
  await clock.advance(1999);
  await viewers.find('probe-2');
  expect(lists).toHaveLength(2 * tries);
  refused.clear();
  await clock.advance(1);
  await expect.poll(() => missingIn(feed.last)).toEqual([]);
});

test('a token that the API server refuses during the lists ends the page', async () => {
  const { viewers, viewerOf, refused } = await startViewers();
  refused.set('ada', [401, 'Unauthorized']);
  const viewer = await viewerOf('ada-1');
  expect(viewer.follow()).toBe(true);
  await expect.poll(() => viewers.knows('ada-1')).toBe(false);
});

test('all lists and watches start again after five minutes, so that a right that was taken away ends', async () => {
  const { clock, open, missingIn, refused, watches } = await startViewers();
  const { feed } = await open('ada-1');
  await expect.poll(() => watches).toEqual(['ada']);
  refused.set('ada', [403, 'Forbidden']);
  await clock.advance(299_000);
  expect(missingIn(feed.last)).toEqual([]);
  await clock.advance(1000);
  await expect.poll(() => missingIn(feed.last)).toEqual(['Forbidden as scripted']);
  await expect.poll(() => watches).toEqual([]);
});

test('two viewers are tested at once, and one whose lists get no answer makes room after a minute', async () => {
  const { clock, viewerOf, open, missingIn, unanswered, lists } = await startViewers();
  for (const user of ['eve', 'mallory']) {
    unanswered.add(user);
    expect((await viewerOf(`${user}-1`)).follow()).toBe(true);
  }
  const ada = await viewerOf('ada-1');
  ada.follow();
  await expect.poll(() => new Set(lists)).toEqual(new Set(['eve', 'mallory']));
  await clock.advance(59_999);
  await viewerOf('probe-1');
  expect(ada.feed.last).toBe('');
  expect(new Set(lists)).toEqual(new Set(['eve', 'mallory']));
  await clock.advance(1);
  await expect.poll(() => missingIn(ada.feed.last)).toEqual([]);
  const { feed } = await open('eve-1');
  expect(missingIn(feed.last)).toEqual([
    expect.stringContaining('the API server has not answered the lists in time') as string,
  ]);
});

test('a viewer who signs out while the test waits for its turn is not tested', async () => {
  const { clock, viewerOf, viewers, unanswered, lists } = await startViewers();
  for (const user of ['eve', 'mallory']) {
    unanswered.add(user);
    (await viewerOf(`${user}-1`)).follow();
  }
  (await viewerOf('ada-1')).follow();
  await expect.poll(() => new Set(lists)).toEqual(new Set(['eve', 'mallory']));
  viewers.forget('ada-1');
  await clock.advance(60_000);
  const bob = await viewerOf('bob-1');
  bob.follow();
  await expect.poll(() => bob.feed.last).not.toBe('');
  expect(lists).not.toContain('ada');
});
