/** Tests how the viewer finds nodes on the page: with the search, with the filters, and by the order of the lanes. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DashboardState, NodeState } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

/** Returns a state with 20 nodes that wait for their turn. The nodes of `special` replace the nodes with the same name. */
function stateOf(special: readonly Partial<NodeState>[]): DashboardState {
  const nodes = nodesNamed(20).map((node): NodeState => {
    const own = special.find(({ name }) => name === node.name);
    return { ...node, phase: 'pending', state: 'pending', steps: [], ...own };
  });
  const labels = ['disk=ssd', 'topology.kubernetes.io/zone=zone-a'];
  return { ...stateWith(nodes), labels };
}

const SPECIAL: readonly Partial<NodeState>[] = [
  { name: 'w3', message: 'wave 2 needs approval by UpgradePolicy production', waits: true },
  { name: 'w5', labels: [1] },
  { name: 'w7', labels: [0, 1] },
  { name: 'w9', hold: 'w9 is held by ada: disk', message: 'w9 is held by ada: disk' },
  { name: 'w11', phase: 'moving', state: 'Cordoning', waits: true, stuck: true },
  { name: 'w13', phase: 'failed', state: 'failed at Restart', message: 'no space left' },
];

async function namesOn(page: Page): Promise<string[]> {
  return await page.locator('.lane .name').allTextContents();
}

test('the search finds nodes by name, by label and by the reason that is shown', async () => {
  await using server = await serveState(stateOf(SPECIAL));
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  const field = page.getByRole('searchbox');
  const found = async (text: string): Promise<string[]> => {
    await field.fill(text);
    await page.getByText(/^\d+ of 20 nodes match\.$/).waitFor();
    return await namesOn(page);
  };
  expect(await found('w12')).toEqual(['w12']);
  expect(await found('ZONE-A')).toEqual(['w5', 'w7']);
  expect(await found('zone-a ssd')).toEqual(['w7']);
  expect(await found('needs approval')).toEqual(['w3']);
  expect(await found('no space')).toEqual(['w13']);
  await field.fill('');
  await expect.poll(async () => (await namesOn(page)).length).toBeGreaterThan(10);
  expect(strays).toEqual([]);
});

test('a slash moves the focus to the search, except while somebody types a text', async () => {
  await using server = await serveState(stateOf(SPECIAL));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const field = page.getByRole('searchbox');
  await field.waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('w1/');
  expect(await field.inputValue()).toBe('w1/');
  await page.getByText('Preview a plan').click();
  const text = page.getByLabel('YAML of the plan');
  await text.focus();
  await page.keyboard.type('a/b');
  expect(await text.inputValue()).toBe('a/b');
});

test('the filters count their nodes and show only these, also two filters together', async () => {
  await using server = await serveState(stateOf(SPECIAL));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const filter = (name: string) => page.getByRole('button', { name, exact: true });
  await filter('failed 1').click();
  await expect.poll(async () => await namesOn(page)).toEqual(['w13']);
  expect(await filter('failed 1').getAttribute('aria-pressed')).toBe('true');
  await filter('held 1').click();
  await expect.poll(async () => await namesOn(page)).toEqual(['w13', 'w9']);
  await filter('failed 1').click();
  await filter('held 1').click();
  expect(await filter('failed 1').getAttribute('aria-pressed')).toBe('false');
  await filter('waiting 2').click();
  await expect.poll(async () => await namesOn(page)).toEqual(['w11', 'w3']);
  await page.getByRole('searchbox').fill('approval');
  await expect.poll(async () => await namesOn(page)).toEqual(['w3']);
});

test.each(['light', 'dark'] as const)(
  'a search without a match says so, and its button shows all nodes again: %s',
  async (colorScheme) => {
    await using server = await serveState(stateOf(SPECIAL));
    await using visited = await visit(browser, server.url, { colorScheme, bypassCSP: true });
    const { page } = visited;
    await page.getByRole('button', { name: 'held 1' }).click();
    await page.getByRole('searchbox').fill('<b>nothing</b>');
    await page.getByText('0 of 20 nodes match.').waitFor();
    expect(await page.getByRole('listbox').count()).toBe(0);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(violations.map(({ id }) => id)).toEqual([]);
    await page.getByRole('button', { name: 'Clear the search' }).click();
    await page.getByRole('listbox', { name: '20 nodes' }).waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('');
    expect(await page.evaluate('document.activeElement.type')).toBe('search');
    expect(await page.locator('b').count()).toBe(0);
  },
);

test('the keyboard opens only nodes that the search shows', async () => {
  await using server = await serveState(stateOf(SPECIAL));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('searchbox').fill('zone-a');
  await page.getByRole('listbox', { name: '2 nodes' }).focus();
  for (const key of ['End', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'w7', exact: true }).waitFor();
});

test('5,000 nodes in two groups: in each group, failed nodes come first and stuck nodes next', async () => {
  const nodes = nodesNamed(5000).map((node, index): NodeState => {
    const version = index < 2500 ? 'v1' : 'v2';
    const own = { ...node, version, phase: 'done' as const };
    if (index === 2499 || index === 4999) return { ...own, phase: 'failed' };
    return index === 2000 ? { ...own, phase: 'moving', waits: true, stuck: true } : own;
  });
  await using server = await serveState(stateWith(nodes));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.locator('.lane').first().waitFor();
  expect((await namesOn(page)).slice(0, 3)).toEqual(['w2499', 'w2000', 'w0']);
  await page.getByRole('button', { name: 'failed 2' }).click();
  await expect.poll(async () => await namesOn(page)).toEqual(['w2499', 'w4999']);
  expect(await page.locator('.group').allTextContents()).toEqual([
    'workers to v1: 2498 of 2500 done, 1 in progress, 1 failed; 1 shown',
    'workers to v2: 2499 of 2500 done, 1 failed; 1 shown',
  ]);
});

test('a node whose agent never answered looks idle: it has no bar, and its lane says what is missing', async () => {
  const message = 'its agent has not answered yet';
  const own = { phase: 'moving', state: 'signalled', message, waits: true } as const;
  const steps = [{ word: 'wait', from: 0, to: 60_000 }];
  const state = stateOf([{ name: 'w0', ...own, unanswered: true, steps }]);
  await using server = await serveState(state);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const lane = page.getByRole('option', { name: `w0 ${message}` });
  await lane.waitFor();
  expect(await lane.locator('.bar').count()).toBe(0);
  expect(await lane.getAttribute('class')).not.toContain('moving');
  expect(await lane.locator('.sign').textContent()).toBe('○');
});
