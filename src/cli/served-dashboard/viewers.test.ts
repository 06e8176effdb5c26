/** Tests for how long a token counts, for whom the plans are followed, and when a viewer loses the place to another. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { startViewers } from '../../../test/support/builders/viewers.ts';

test('the API server is asked once for a token within ten seconds, and again after that', async () => {
  const { clock, viewers, reviews } = await startViewers();
  const both = await Promise.all([viewers.find('ada-1'), viewers.find('ada-1')]);
  expect(both.map(({ kind }) => kind)).toEqual(['known', 'known']);
  await clock.advance(9999);
  await viewers.find('ada-1');
  expect(reviews).toEqual(['ada-1']);
  await clock.advance(1);
  await viewers.find('ada-1');
  expect(reviews).toEqual(['ada-1', 'ada-1']);
  // The second answer counts for ten seconds, too.
  await clock.advance(9999);
  await viewers.find('ada-1');
  expect(reviews).toHaveLength(2);
});

test('two questions with one token, also after ten seconds, have the same viewer as their answer', async () => {
  const { clock, viewerOf } = await startViewers();
  const viewer = await viewerOf('ada-1');
  expect(viewer.user).toBe('ada');
  await clock.advance(20_000);
  expect(await viewerOf('ada-1')).toBe(viewer);
  expect(await viewerOf('ada-2')).not.toBe(viewer);
});

test('a token that was refused is not known any more, and its pages end', async () => {
  const { clock, viewers, open, unnamed, watches } = await startViewers();
  expect(viewers.knows('ada-1')).toBe(false);
  const { feed, seen } = await open('ada-1');
  expect(viewers.knows('ada-1')).toBe(true);
  expect(viewers.knows('ada-2')).toBe(false);
  await expect.poll(() => watches).toEqual(['ada']);
  unnamed.set('ada-1', [401, 'Unauthorized']);
  await clock.advance(10_000);
  expect(await viewers.find('ada-1')).toMatchObject({ kind: 'refused' });
  expect(viewers.knows('ada-1')).toBe(false);
  expect(feed.last).toBe('');
  await expect.poll(() => seen.at(-1)).toBe('event: end\ndata:\n\n');
  await expect.poll(() => watches).toEqual([]);
});

test('a token stays known while the API server does not answer, and its pages stay', async () => {
  const { clock, viewers, open, unnamed } = await startViewers();
  const { feed } = await open('ada-1');
  unnamed.set('ada-1', [500, 'InternalError']);
  await clock.advance(10_000);
  const found = await viewers.find('ada-1');
  expect(found).toMatchObject({ kind: 'unanswered' });
  expect(viewers.knows('ada-1')).toBe(true);
  expect(feed.last).not.toBe('');
});

test('a token of a user who may not ask for the own name is refused with the reason of the API server', async () => {
  const { viewers, unnamed } = await startViewers();
  unnamed.set('eve-1', [403, 'Forbidden']);
  expect(await viewers.find('eve-1')).toEqual({
    kind: 'refused',
    why: expect.stringContaining('Forbidden as scripted') as string,
  });
});

test('signing out closes the pages of this token, and of no other', async () => {
  const { viewers, open, watches } = await startViewers();
  const ada = await open('ada-1');
  const bob = await open('bob-1');
  await expect.poll(() => watches.toSorted()).toEqual(['ada', 'bob']);
  viewers.forget('ada-1');
  viewers.forget('carol-1');
  expect([viewers.knows('ada-1'), viewers.knows('bob-1')]).toEqual([false, true]);
  expect(ada.feed.last).toBe('');
  expect(bob.feed.last).not.toBe('');
  await expect.poll(() => watches).toEqual(['bob']);
});

test('the state of a viewer names the user and the cluster, and allows actions', async () => {
  const { open, missingIn } = await startViewers();
  const { feed, viewer } = await open('ada-1');
  expect(JSON.parse(feed.last)).toMatchObject({
    viewer: 'ada',
    cluster: 'prod',
    allowsActions: true,
    plans: [],
  });
  expect(missingIn(feed.last)).toEqual([]);
  expect(viewer.explain('autopilot//a', 'n1')).toEqual([]);
});

test('while a page is open its token is checked every ten seconds, and a token that has expired ends the page', async () => {
  const { clock, viewers, open, reviews, unnamed, stop } = await startViewers();
  const { feed } = await open('ada-1');
  const running = viewers.run(stop.signal);
  await clock.advance(10_000);
  await expect.poll(() => reviews).toHaveLength(2);
  unnamed.set('ada-1', [401, 'Unauthorized']);
  // The next check starts only after the answer to the last one.
  await expect
    .poll(
      async () => {
        await clock.advance(5000);
        return feed.last;
      },
      { interval: 10 },
    )
    .toBe('');
  stop.abort(new Error('the test is over'));
  await running;
});

test('the plans are followed for thirty more seconds after the last page was closed', async () => {
  const { clock, viewers, open, watches, stop } = await startViewers();
  const { close } = await open('ada-1');
  await expect.poll(() => watches).toEqual(['ada']);
  const running = viewers.run(stop.signal);
  await close();
  await clock.advance(30_000);
  // A question to the API server and back gives a watch that was ended time to close.
  await viewers.find('probe-1');
  expect(watches).toEqual(['ada']);
  await clock.advance(10_000);
  await expect.poll(() => watches).toEqual([]);
  expect(viewers.knows('ada-1')).toBe(true);
  stop.abort(new Error('the test is over'));
  await running;
});

test('the plans are followed while a page is open, even if it is open for minutes', async () => {
  const { clock, viewers, open, watches, reviews, stop } = await startViewers();
  const { close } = await open('ada-1');
  await expect.poll(() => watches).toEqual(['ada']);
  const running = viewers.run(stop.signal);
  for (let check = 2; check < 6; check++) {
    await expect
      .poll(
        async () => {
          await clock.advance(5000);
          return reviews.length;
        },
        { interval: 10 },
      )
      .toBeGreaterThanOrEqual(check);
  }
  await close();
  // The thirty seconds begin when a page was last open, and not when the first page was opened.
  await clock.advance(10_000);
  await viewers.find('probe-1');
  expect(watches).toEqual(['ada']);
  stop.abort(new Error('the test is over'));
  await running;
});

test('at the end of the process all tokens are forgotten, and all pages end', async () => {
  const { viewers, open, stop } = await startViewers();
  const { feed } = await open('ada-1');
  const end = new AbortController();
  const running = viewers.run(end.signal);
  end.abort(new Error('over'));
  await running;
  expect(viewers.knows('ada-1')).toBe(false);
  expect(feed.last).toBe('');
  expect(stop.signal.aborted).toBe(false);
});

test('of 256 known tokens the oldest one without a place is forgotten for a new one', async () => {
  const { viewers, open, watches } = await startViewers();
  await open('ada-1');
  await expect.poll(() => watches).toEqual(['ada']);
  for (let token = 1; token < 256; token++) await viewers.find(`bob-${token}`);
  expect([viewers.knows('ada-1'), viewers.knows('bob-1')]).toEqual([true, true]);
  await viewers.find('bob-256');
  expect([viewers.knows('ada-1'), viewers.knows('bob-1')]).toEqual([true, false]);
  expect([viewers.knows('bob-2'), viewers.knows('bob-256')]).toEqual([true, true]);
});

test('a preview of the served page leaves out the checks of refit ready, which read every pod', async () => {
  const { state, viewerOf } = await startViewers();
  state.nodes = [buildNode('w1')];
  const k0supdate = buildUpdate({ targets: { workers: listed('w1') } });
  const viewer = await viewerOf('ada-1');
  const { lines } = await viewer.preview(JSON.stringify(buildPlan({ commands: [{ k0supdate }] })));
  expect(lines.join('\n')).toContain('batch 1  w1');
  expect(lines.join('\n')).not.toMatch(/ready for v/u);
});
