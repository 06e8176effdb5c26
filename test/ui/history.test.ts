/** Tests in a real browser that the history of a plan opens an earlier run, and that the page returns from it. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunShown } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const HOSTILE = '<img src=x onerror="document.title=1">';
const RUN: RunShown = {
  started: '2026-11-19T08:00:00Z',
  ended: '2026-11-19T08:30:00Z',
  version: 'v1.36.2',
  said: [{ heading: 'why', lines: [`w1: ${HOSTILE}`] }],
  nodes: [
    { name: 'w1', from: 'v1.36.1', failure: 'no space left' },
    { name: 'w2', from: 'v1.36.1', to: 'v1.36.2' },
    { name: 'w3' },
  ],
};

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

async function serve() {
  return await serveState(stateWith(nodesNamed(3)), undefined, [], undefined, { run: RUN });
}

function fragmentOf(page: Page): string {
  return new URL(page.url()).hash;
}

test('the history opens a run with its versions, and Escape returns to the present and to the link', async () => {
  await using server = await serve();
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  const link = page.getByRole('region', { name: 'History' }).getByRole('link');
  await link.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Run a', exact: true }).waitFor();
  expect(fragmentOf(page)).toBe('#plan=autopilot&run=a');
  await page.getByRole('row', { name: 'w1 v1.36.1 failed: no space left' }).waitFor();
  await page.getByRole('row', { name: 'w2 v1.36.1 v1.36.2' }).waitFor();
  await page.getByRole('row', { name: 'w3 not known not recorded' }).waitFor();
  await page.getByText(HOSTILE).waitFor();
  expect(await page.locator('img').count()).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Run a', exact: true }).waitFor({ state: 'detached' });
  expect(fragmentOf(page)).toBe('#plan=autopilot');
  const focused = "document.activeElement.closest('.history a') !== null";
  expect(await page.evaluate(focused)).toBe(true);
  expect(strays).toEqual([]);
});

test('the back button of the browser closes a run, and a node takes the place of a run', async () => {
  await using server = await serve();
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const heading = page.getByRole('heading', { name: 'Run a', exact: true });
  await page.getByRole('region', { name: 'History' }).getByRole('link').click();
  await heading.waitFor();
  await page.goBack();
  await heading.waitFor({ state: 'detached' });
  await page.goForward();
  await heading.waitFor();
  await page.getByRole('option', { name: 'w2' }).click();
  await heading.waitFor({ state: 'detached' });
  await expect.poll(() => fragmentOf(page)).toBe('#plan=autopilot&node=w2');
});

test.each(['nosuch', HOSTILE, '__proto__'])(
  'a link to the run %j says that there is none',
  async (name) => {
    await using server = await serve();
    const link = `${server.url}#run=${encodeURIComponent(name)}`;
    await using visited = await visit(browser, link);
    const { page, strays } = visited;
    await page.getByText('The plan has no such run in its history').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    await page.getByRole('button', { name: 'Back to the present' }).click();
    await page.getByText('The plan has no such run').waitFor({ state: 'detached' });
    expect(strays).toEqual([]);
  },
);

test.each(['light', 'dark'] as const)(
  'axe finds nothing in an open run: %s',
  async (colorScheme) => {
    await using server = await serve();
    const options = { colorScheme, viewport: { width: 320, height: 700 }, bypassCSP: true };
    await using visited = await visit(browser, `${server.url}#run=a`, options);
    const { page } = visited;
    await page.getByRole('row', { name: 'w2 v1.36.1 v1.36.2' }).waitFor();
    await page.evaluate(axe.source);
    const found = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(found.violations.map(({ id }) => id)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
  },
);
