/**
 * Tests the dashboard in a real browser: a plan until its end, hostile texts, a lost API server, and that no page sends
 * requests to other servers.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { autopilot } from '../../sandbox/start/autopilot.ts';
import { cattle } from '../../sandbox/start/cattle.ts';
import type { NodeState } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, startDashboard, startDemonstration, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

test('the overview follows a plan to its end, and says since when the API server is away', async () => {
  const { kubeconfig, end } = await startDemonstration(cattle);
  await using dashboard = await startDashboard(kubeconfig);
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  const plan = page.getByRole('button', { name: /k3s-agent/ });
  await plan.getByText(/^running \d\/5$/).waitFor();
  await plan.getByText('done 5/5').waitFor({ timeout: 60_000 });
  await page.getByRole('option', { name: 'agent3' }).click();
  await page.getByRole('heading', { name: 'agent3' }).waitFor();
  await page.getByText(/went from|has v1\.36\.3/).waitFor();
  expect(strays).toEqual([]);
  await end();
  await page
    .getByText(new RegExp(`^Stale since ${TIME}: the API server does not answer`))
    .waitFor();
  await plan.getByText('done 5/5').waitFor();
});

test('a leader that is killed meanwhile: the page says so, and since when', async () => {
  const { directory, kubeconfig } = await startDemonstration(autopilot);
  await using dashboard = await startDashboard(kubeconfig);
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  await page.getByText(/^running \d\/8$/).waitFor();
  expect(await page.getByText(/Stale/).count()).toBe(0);
  const pid = await readFile(join(directory, 'pids', 'refit-controller'), 'utf8');
  process.kill(Number(pid), 'SIGKILL');
  const stale = new RegExp(
    `^Stale since ${TIME}. No renewal by leader .*: another refit controller`,
  );
  await page.getByText(stale).waitFor({ timeout: 60_000 });
  expect(strays).toEqual([]);
});

test('a dashboard that ended: the page keeps what it knows, and says since when that is old', async () => {
  const server = await serveState(stateWith(nodesNamed(3)));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('option', { name: 'w2' }).waitFor();
  await server.close();
  await page
    .getByText('Stale since 2026-11-20T08:10:00Z: refit dashboard does not answer.')
    .waitFor();
  await page.getByRole('option', { name: 'w2' }).waitFor();
});

test('the page asks nobody but its own server, and its policy lets it ask nobody else', async () => {
  await using server = await serveState(stateWith(nodesNamed(3)));
  await using other = await serveState(stateWith(nodesNamed(1)));
  await using visited = await visit(browser, server.url);
  const { page, strays, asked } = visited;
  await page.getByRole('option', { name: 'w2' }).click();
  await page.getByRole('button', { name: 'Close' }).waitFor();
  await expect.poll(() => asked.some((url) => url.includes('/api/why?'))).toBe(true);
  expect(strays).toEqual([]);
  const refused = `fetch('http://127.0.0.1:${other.port}/').then(() => 'answered', () => 'refused')`;
  expect(await page.evaluate(refused)).toBe('refused');
  expect(strays.join()).toContain('Content Security Policy');
});

test('names and messages of the cluster are text, whatever they look like', async () => {
  const hostile = '<img src=x onerror="document.title=1"></script><b>';
  const state = stateWith(
    nodesNamed(3, (index) => `${hostile}${index}`),
    {
      title: hostile,
      why: [{ heading: 'waits', lines: [hostile] }],
    },
  );
  await using server = await serveState(state);
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  await page.getByRole('heading', { name: hostile }).waitFor();
  await page.getByRole('option', { name: `${hostile}1` }).click();
  await page.getByRole('heading', { name: `${hostile}1` }).waitFor();
  expect(await page.locator('img, b').count()).toBe(0);
  expect(await page.title()).toBe('1/3 · Refit');
  expect(strays).toEqual([]);
});

test('only the printed URL is answered, only with its own name, and only GET', async () => {
  await using server = await serveState(stateWith(nodesNamed(1)));
  const own = new URL('api/state', server.url);
  const token = new URL(server.url).search;
  const cookie = `refit-${server.port}=${token.slice('?token='.length)}`;
  const ask = async (init: RequestInit) => (await fetch(own, init)).status;
  expect(await ask({})).toBe(403);
  expect(await ask({ headers: { cookie: `${cookie}x` } })).toBe(403);
  expect(await ask({ headers: { cookie } })).toBe(200);
  expect(await ask({ headers: { cookie }, method: 'POST' })).toBe(405);
  await using visited = await visit(browser, server.url.replace('127.0.0.1', 'localhost'));
  await visited.page.getByRole('heading', { name: 'Plans' }).waitFor();
});

test('without --allow-actions there is no button that controls a plan', async () => {
  const state = stateWith(nodesNamed(3));
  await using server = await serveState(state);
  await using visited = await visit(browser, server.url);
  await visited.page.getByRole('option', { name: 'w2' }).click();
  await visited.page.getByRole('button', { name: 'Close' }).waitFor();
  expect(await buttonsOf(visited.page)).toEqual(['Preview', 'Close']);
  server.publish({ ...state, allowsActions: true });
  await visited.page.getByRole('button', { name: 'Pause' }).waitFor();
  expect(await buttonsOf(visited.page)).toEqual([
    'Preview',
    'Pause',
    'Abort…',
    'Close',
    'Retry',
    'Hold…',
  ]);
});

test('with --allow-actions the buttons do what the commands do, and an abort is asked for first', async () => {
  const { kubeconfig } = await startDemonstration(autopilot);
  await using dashboard = await startDashboard(kubeconfig, { allowActions: true });
  await using visited = await visit(browser, dashboard.url);
  const { page, strays, asked } = visited;
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  await button('Pause').click();
  await page.getByText('Plan autopilot (first-minute) is paused.').waitFor();
  await page.getByText('No new node starts until `refit resume`.').waitFor();
  await page.getByRole('option', { name: 'worker5' }).click();
  await button('Hold…').click();
  await page.getByRole('dialog').getByLabel('Reason').fill('disk');
  await button('Hold the node').click();
  await page.getByText(/^worker5 is held by .*: disk\. No plan starts on it/).waitFor();
  await button('Unhold…').click();
  await button('Keep it held').click();
  await button('Unhold…').click();
  await button('End the hold').click();
  await page.getByText('worker5 is not held any more: plans may start on it.').waitFor();
  await button('Resume').click();
  await page.getByText('Plan autopilot (first-minute) continues.').waitFor();
  const sent = (): number => asked.filter((url) => url.endsWith('/api/act')).length;
  await button('Abort…').click();
  await button('Keep it running').click();
  await button('Abort…').click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(sent()).toBe(4);
  await button('Abort…').click();
  await page.getByRole('dialog').getByLabel('Reason').fill('wrong release');
  await button('Abort the plan').click();
  await page.getByText('Plan autopilot (first-minute) is aborted: wrong release.').waitFor();
  await page.getByText(/^failed \d\/8$/).waitFor();
  expect(strays).toEqual([]);
});

test('a question is about the plan that it names: it goes away with that plan, and so does the panel of its node', async () => {
  const first = stateWith(nodesNamed(3), { key: 'autopilot//a', title: 'Plan a' });
  const other = stateWith(nodesNamed(3), { key: 'autopilot//b', title: 'Plan b' });
  const allowsActions = true;
  await using server = await serveState({ ...first, allowsActions });
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('option', { name: 'w2' }).click();
  await page.getByRole('button', { name: 'Abort…' }).click();
  await page.getByRole('heading', { name: 'Abort Plan a?' }).waitFor();
  server.publish({ ...other, allowsActions });
  await page.getByRole('heading', { name: 'Plan b', exact: true }).waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Close' }).count()).toBe(0);
});

test('another plan that comes before the shown one does not take its place', async () => {
  const shown = stateWith(nodesNamed(3), { key: 'autopilot//b', title: 'Plan b' });
  const earlier = stateWith(nodesNamed(3), { key: 'autopilot//a', title: 'Plan a' });
  await using server = await serveState(shown);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('heading', { name: 'Plan b', exact: true }).waitFor();
  server.publish({ ...shown, plans: [...earlier.plans, ...shown.plans] });
  await page.getByRole('button', { name: 'Plan a' }).waitFor();
  expect(await page.getByRole('heading', { name: 'Plan b', exact: true }).count()).toBe(1);
});

test('what the plan waits for is the first button and stands out, and a node that has not started says why', async () => {
  const from = Date.parse('2026-11-20T08:00:00Z');
  const message = 'wave 2 needs approval by UpgradePolicy production';
  const nodes = nodesNamed(2).map((node, index): NodeState => {
    const steps = [{ word: 'download', from, to: from + 2 }];
    return index === 0
      ? { ...node, steps }
      : { ...node, phase: 'pending', state: 'pending', message, steps: [] };
  });
  await using server = await serveState({
    ...stateWith(nodes, { unapproved: 2 }),
    allowsActions: true,
  });
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const group = page.getByRole('group', { name: 'Control the plan' });
  await group.waitFor();
  expect(await group.getByRole('button').allTextContents()).toEqual([
    'Approve wave 2',
    'Pause',
    'Abort…',
  ]);
  expect(await group.locator('.primary').allTextContents()).toEqual(['Approve wave 2']);
  await page.getByRole('option', { name: `w1 ${message}` }).waitFor();
  // A span of two milliseconds has three different times.
  expect(await page.locator('.tick').allTextContents()).toEqual([
    '08:00:00.000',
    '08:00:00.001',
    '08:00:00.002',
  ]);
});

/** Returns the names of all buttons except those that choose a plan. */
async function buttonsOf(page: Page): Promise<string[]> {
  return await page.locator('button:not([aria-pressed])').allTextContents();
}
