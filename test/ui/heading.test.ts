/** Tests the head of the page: the cluster, the versions, the title of the tab, and the zone of the times. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

test('the head names the cluster, the versions and who started the plan, and the title has the progress', async () => {
  const nodes = nodesNamed(12).map((node) => ({ ...node, from: 'v1.36.2+k0s.0' }));
  const state = stateWith(nodes, { done: 3, creator: 'UpdateConfig <b>stable</b>' });
  await using server = await serveState({ ...state, cluster: '<b>prod</b>' });
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  await page.getByText('<b>prod</b>', { exact: true }).waitFor();
  await page.getByText('v1.36.2+k0s.0 → v1.36.3+k0s.0').waitFor();
  await page.getByText('started by UpdateConfig <b>stable</b>').waitFor();
  await expect.poll(async () => await page.title()).toBe('3/12 · <b>prod</b> · Refit');
  server.publish({ ...stateWith(nodes, { done: 4 }), cluster: 'prod' });
  await expect.poll(async () => await page.title()).toBe('4/12 · prod · Refit');
  expect(await page.locator('b').count()).toBe(0);
  expect(strays).toEqual([]);
});

test('times are in the zone of the viewer, which the page names once, and in UTC on hover', async () => {
  await using server = await serveState(stateWith(nodesNamed(3)));
  await using visited = await visit(browser, server.url, { timezoneId: 'Asia/Kolkata' });
  const { page } = visited;
  await page.getByText('20 Nov 2026, 13:30:00').waitFor();
  const time = page.locator('time').first();
  expect(await time.getAttribute('title')).toBe('2026-11-20 08:00:00 UTC');
  expect(await time.getAttribute('datetime')).toBe('2026-11-20T08:00:00.000Z');
  expect(await page.locator('.tick').first().textContent()).toBe('13:30:00');
  expect(await page.getByText(/Asia\/|Kolkata|Calcutta/).count()).toBe(1);
});
