/** Tests that the bars of a long upgrade can show its last part on the whole width. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NodeState } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const END = Date.parse('2026-11-20T12:00:00Z');

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

/** Of three hours, w0 uses the first one, w1 begins half an hour before the last one, and w2 uses the last ten minutes. */
function longUpgrade(): NodeState[] {
  const spans = [
    [END - 3 * HOUR, END - 2 * HOUR],
    [END - 1.5 * HOUR, END - 0.5 * HOUR],
    [END - 10 * MINUTE, END],
  ] as const;
  return nodesNamed(3).map((node, index): NodeState => {
    const [from, to] = spans[index] ?? spans[0];
    return { ...node, phase: 'done', steps: [{ word: 'restart', from, to }] };
  });
}

/** Returns for each node where its bar begins and how wide it is, in percent; empty for a node without a bar. */
async function barsOn(page: Page): Promise<string[]> {
  const lanes = await page.locator('.lane').all();
  return await Promise.all(
    lanes.map(async (lane) => {
      const [step] = await lane.locator('.step').all();
      const style = (await step?.getAttribute('style')) ?? '';
      return style.replaceAll(/[^\d. ]/g, '').trim();
    }),
  );
}

test('the last hour of a long upgrade fills the whole width, and the address keeps it', async () => {
  await using server = await serveState(stateWith(longUpgrade()));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const choice = page.getByRole('combobox', { name: 'Show' });
  expect(await choice.locator('option').allTextContents()).toEqual([
    'the whole time',
    'last 10 minutes',
    'last hour',
  ]);
  const [, whole] = await barsOn(page);
  expect(whole).toMatch(/^50\S* +33\.3/);
  await choice.selectOption('last hour');
  await expect
    .poll(async () => await barsOn(page))
    .toEqual(['', expect.stringMatching(/^0 +50$/), expect.stringMatching(/^83\.3\S* +16\.6/)]);
  await expect.poll(() => new URL(page.url()).hash).toBe('#time=1h');
  await choice.selectOption('the whole time');
  await expect.poll(async () => (await barsOn(page))[1]).toBe(whole);
});

test('a link restores the zoom, and a short upgrade has none', async () => {
  await using long = await serveState(stateWith(longUpgrade()));
  await using restored = await visit(browser, `${long.url}#time=10m`);
  expect(await restored.page.getByRole('combobox', { name: 'Show' }).inputValue()).toBe('10m');
  expect(await barsOn(restored.page)).toEqual(['', '', expect.stringMatching(/^0 +100$/)]);
  await using short = await serveState(stateWith(nodesNamed(3)));
  await using visited = await visit(browser, `${short.url}#time=10m`);
  await visited.page.getByRole('listbox').waitFor();
  expect(await visited.page.getByRole('combobox', { name: 'Show' }).count()).toBe(0);
});
