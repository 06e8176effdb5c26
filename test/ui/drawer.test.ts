/** Tests the drawer of a node: the focus, the keyboard, what it shows, and how it copies commands. */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NodeState, Said } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

const SAID: readonly Said[] = [
  { heading: 'waits', lines: ['PodDisruptionBudget default/web blocks default/web-1'] },
  { heading: 'hooks', lines: ['backup of w2 has not succeeded yet: Job hooks/backup-1 runs'] },
  { heading: 'commands', lines: ['refit retry w2', 'refit why w2'], areCommands: true },
];

function focusOn(page: Page): Promise<string> {
  return page.evaluate<string>('document.activeElement.className');
}

test('the drawer takes the focus, Escape closes it, and the focus goes back to the list', async () => {
  await using server = await serveState(stateWith(nodesNamed(40)));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('listbox').focus();
  await page.keyboard.press('Enter');
  const drawer = page.getByRole('complementary', { name: 'w2', exact: true });
  await drawer.waitFor();
  await expect.poll(async () => await focusOn(page)).toBe('drawer');
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await expect.poll(async () => await focusOn(page)).toBe('lanes');
});

test('a drawer that a link opens gives the focus to the list when it closes', async () => {
  await using server = await serveState(stateWith(nodesNamed(5)));
  await using visited = await visit(browser, `${server.url}#node=w3`);
  const { page } = visited;
  await page.getByRole('complementary', { name: 'w3' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await expect.poll(async () => await focusOn(page)).toBe('lanes');
});

test('Escape in a question closes only the question', async () => {
  await using server = await serveState({ ...stateWith(nodesNamed(5)), allowsActions: true });
  await using visited = await visit(browser, `${server.url}#node=w1`);
  const { page } = visited;
  await page.getByRole('button', { name: 'Hold…' }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('complementary', { name: 'w1' }).waitFor();
});

test.each(['light', 'dark'] as const)(
  'the drawer shows versions, steps, reasons and labels, and axe finds nothing: %s',
  async (colorScheme) => {
    const nodes = nodesNamed(5).map(
      (node): NodeState => ({
        ...node,
        from: 'v1.36.2+k0s.0',
        labels: [0],
      }),
    );
    await using server = await serveState(
      { ...stateWith(nodes), labels: ['disk=<b>'] },
      undefined,
      SAID,
    );
    const options = { colorScheme, bypassCSP: true };
    await using visited = await visit(browser, `${server.url}#node=w2`, options);
    const { page } = visited;
    const drawer = page.getByRole('complementary', { name: 'w2' });
    for (const text of [
      'v1.36.2+k0s.0',
      'v1.36.3+k0s.0',
      /^drain: 1 min 0 s, from/,
      'PodDisruptionBudget default/web blocks default/web-1',
      /Job hooks\/backup-1 runs$/,
    ])
      await drawer.getByText(text, { exact: true }).first().waitFor();
    await drawer.getByText('Labels').click();
    await drawer.getByText('disk=<b>').waitFor();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(violations.map(({ id }) => id)).toEqual([]);
  },
);

test('each command has a button that copies it, and the page says so', async () => {
  await using server = await serveState(stateWith(nodesNamed(5)), undefined, SAID);
  const permissions = ['clipboard-read', 'clipboard-write'];
  await using visited = await visit(browser, `${server.url}#node=w2`, { permissions });
  const { page, strays } = visited;
  await page.getByRole('button', { name: 'Copy refit retry w2' }).click();
  await page.getByRole('status').getByText('Copied: refit retry w2').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('refit retry w2');
  expect(strays).toEqual([]);
});

test('a browser that refuses to copy makes the page say so', async () => {
  await using server = await serveState(stateWith(nodesNamed(5)), undefined, SAID);
  await using visited = await visit(browser, `${server.url}#node=w2`);
  const { page } = visited;
  await page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error('no'))`);
  await page.getByRole('button', { name: 'Copy refit why w2' }).click();
  await page.getByText('The browser does not allow the page to copy.').waitFor();
});

test('on a narrow screen the drawer covers the page, which the keyboard then cannot reach', async () => {
  await using server = await serveState(stateWith(nodesNamed(5)));
  const options = { viewport: { width: 400, height: 800 } };
  await using visited = await visit(browser, `${server.url}#node=w2`, options);
  const { page } = visited;
  const drawer = page.getByRole('complementary', { name: 'w2' });
  await drawer.waitFor();
  await expect.poll(async () => await page.locator('main').getAttribute('inert')).toBe('');
  expect(await drawer.boundingBox()).toMatchObject({ x: 0, y: 0, width: 400, height: 800 });
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await expect.poll(async () => await page.locator('main').getAttribute('inert')).toBeNull();
});

test('the drawer lists the pods that are left of a drain, and the budgets that block them', async () => {
  const drain = { left: 7, pods: ['shop/db-0', 'shop/web-1'], budgets: ['shop/web'] };
  const nodes = nodesNamed(3).map((node): NodeState => ({ ...node, drain }));
  await using server = await serveState(stateWith(nodes));
  await using visited = await visit(browser, `${server.url}#node=w2`);
  const drawer = visited.page.getByRole('complementary', { name: 'w2' });
  const said = (heading: string) => drawer.locator('.said', { hasText: heading }).innerText();
  expect((await said('7 pods left')).split(/\n+/)).toEqual([
    '7 pods left',
    'shop/db-0',
    'shop/web-1',
    'and 5 more',
  ]);
  expect((await said('blocked by')).split(/\n+/)).toEqual(['blocked by', 'shop/web']);
});

test('the drawer lists the Events about the node, and says why they cannot be read', async () => {
  const event = { at: '2026-11-20T08:00:00Z', reason: 'Signalled', message: 'Upgrade <b>started' };
  const nodeEvents = { events: [{ ...event, count: 2 }], missing: 'only some of them' };
  const state = stateWith(nodesNamed(3));
  await using server = await serveState(state, undefined, SAID, undefined, { nodeEvents });
  await using visited = await visit(browser, `${server.url}#node=w2`);
  const drawer = visited.page.getByRole('complementary', { name: 'w2' });
  await drawer.getByRole('heading', { name: 'Events' }).waitFor();
  await drawer.getByText(/Signalled: Upgrade <b>started \(2 times\)$/).waitFor();
  await drawer.getByText('The Events cannot be read: only some of them').waitFor();
});
