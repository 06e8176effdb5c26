/** Tests that the address of the page restores what the viewer looks at, and that foreign values in a link do no harm. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DashboardState } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesInWaves, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

function twoPlans(): DashboardState {
  const first = stateWith(nodesInWaves(20), { key: 'autopilot//a', title: 'Plan a' });
  const other = stateWith(nodesInWaves(20), { key: 'autopilot//b', title: 'Plan b' });
  return { ...first, plans: [...first.plans, ...other.plans] };
}

function fragmentOf(page: Page): string {
  return new URL(page.url()).hash;
}

async function namesOn(page: Page): Promise<string[]> {
  return await page.locator('.lane .name').allTextContents();
}

test('a link restores the plan, the node, the groups, the filter and the search', async () => {
  await using server = await serveState(twoPlans());
  const link = `${server.url}#plan=b&node=w12&group=wave&show=failed&q=w1`;
  await using visited = await visit(browser, link);
  const { page, strays } = visited;
  await page.getByRole('heading', { name: 'Plan b', exact: true }).waitFor();
  await page.getByRole('heading', { name: 'w12', exact: true }).waitFor();
  expect(await namesOn(page)).toEqual(['w12', 'w17']);
  expect(await page.getByRole('searchbox').inputValue()).toBe('w1');
  expect(await page.getByRole('combobox').inputValue()).toBe('wave');
  const failed = page.getByRole('button', { name: 'failed 4' });
  expect(await failed.getAttribute('aria-pressed')).toBe('true');
  expect(strays).toEqual([]);
});

test('the address has only what the viewer has changed, and the browser goes back through it', async () => {
  await using server = await serveState(twoPlans());
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('heading', { name: 'Plan a', exact: true }).waitFor();
  expect(fragmentOf(page)).toBe('');
  await page.getByRole('button', { name: /^Plan b/ }).click();
  await expect.poll(() => fragmentOf(page)).toBe('#plan=b');
  await page.getByRole('button', { name: 'failed 4' }).click();
  await expect.poll(() => fragmentOf(page)).toBe('#plan=b&show=failed');
  await page.getByRole('searchbox').pressSequentially('w1');
  await expect.poll(() => fragmentOf(page)).toBe('#plan=b&show=failed&q=w1');
  await page.getByRole('option', { name: 'w17' }).click();
  await expect.poll(() => fragmentOf(page)).toBe('#plan=b&node=w17&show=failed&q=w1');
  await page.goBack();
  await page.getByRole('heading', { name: 'w17' }).waitFor({ state: 'detached' });
  await page.goBack();
  await expect.poll(async () => await page.getByRole('searchbox').inputValue()).toBe('');
  await page.goBack();
  await expect.poll(async () => (await namesOn(page)).length).toBeGreaterThan(10);
  await page.goBack();
  await page.getByRole('heading', { name: 'Plan a', exact: true }).waitFor();
  await page.goForward();
  await page.getByRole('heading', { name: 'Plan b', exact: true }).waitFor();
});

test('a link of one plan names it by its key if another plan has the same name', async () => {
  const first = stateWith(nodesInWaves(3), { key: 'autopilot//a', title: 'Plan a' });
  const other = stateWith(nodesInWaves(3), { key: 'cattle/x/a', title: 'Plan x/a' });
  await using server = await serveState({ ...first, plans: [...first.plans, ...other.plans] });
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('button', { name: /^Plan x\/a/ }).click();
  await expect.poll(() => fragmentOf(page)).toBe('#plan=cattle%2Fx%2Fa');
  await page.reload();
  await page.getByRole('heading', { name: 'Plan x/a', exact: true }).waitFor();
});

const HOSTILE = encodeURIComponent('<img src=x onerror="document.title=1"></script><b>');

test.each([
  ['an unknown plan with a node', '#plan=nosuch&node=w1'],
  ['an unknown node', '#node=nosuch'],
  ['unknown filters, groups and members', '#show=__proto__&show=x&group=constructor&other=1'],
  ['a percent sign without digits', '#plan=%&node=%zz&show=%'],
  ['HTML in each member', `#plan=${HOSTILE}&node=${HOSTILE}&group=${HOSTILE}&show=${HOSTILE}`],
])('a link with %s shows the first plan and no error', async (_name, fragment) => {
  await using server = await serveState(twoPlans());
  await using visited = await visit(browser, `${server.url}${fragment}`);
  const { page, strays } = visited;
  await page.getByRole('heading', { name: 'Plan a', exact: true }).waitFor();
  await page.getByRole('option', { name: 'w2' }).first().waitFor();
  expect(await page.getByRole('button', { name: 'Close' }).count()).toBe(0);
  expect(await page.locator('img, b').count()).toBe(0);
  expect(await page.getByRole('combobox').inputValue()).toBe('role');
  expect(strays).toEqual([]);
});

test('a search from a link is text in the field, whatever it looks like, and at most 200 characters long', async () => {
  await using server = await serveState(twoPlans());
  await using visited = await visit(browser, `${server.url}#q=${HOSTILE}${'x'.repeat(1000)}`);
  const { page, strays } = visited;
  await page.getByText('0 of 20 nodes match.').waitFor();
  const text = await page.getByRole('searchbox').inputValue();
  expect(text).toContain('<img src=x');
  expect(text).toHaveLength(200);
  expect(await page.locator('img, b').count()).toBe(0);
  expect(strays).toEqual([]);
});
