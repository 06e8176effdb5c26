/** Shows the dashboard in a real browser: a plan to its end, hostile texts, a lost API server, and that no page asks anybody else. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cattle } from '../../sandbox/start/cattle.ts';
import { serveState, startBrowser, startDashboard, temporaryFolder, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

test('the overview follows a plan to its end, and says since when the API server is away', async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, 'pids'));
  const started = new AsyncDisposableStack();
  onTestFinished(async () => await started.disposeAsync());
  const applied = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const running = cattle.run(
    {},
    {
      directory: folder.path,
      started,
      abort: new AbortController().signal,
      say: (line) => void (line.startsWith('Plan applied') && applied.resolve()),
      keep: async () => await ended.promise,
    },
  );
  await Promise.race([applied.promise, running]);
  await using dashboard = await startDashboard(join(folder.path, 'kubeconfig.json'));
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  const plan = page.getByRole('button', { name: /k3s-server/ });
  await plan.getByText(/^running \d\/8$/).waitFor();
  await plan.getByText('done 8/8').waitFor({ timeout: 60_000 });
  await page.getByRole('option', { name: 'node3' }).click();
  await page.getByRole('heading', { name: 'node3' }).waitFor();
  await page.getByText(/went from|has v1\.36\.3/).waitFor();
  expect(strays).toEqual([]);
  ended.resolve();
  await running;
  await started.disposeAsync();
  await page.getByText(/Stale since .*: the API server does not answer/).waitFor();
  await plan.getByText('done 8/8').waitFor();
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
  expect(await page.title()).toBe('Refit');
  expect(strays).toEqual([]);
});

test('only the printed URL is answered, only with its own name, and only GET', async () => {
  await using server = await serveState(stateWith(nodesNamed(1)));
  const own = `http://127.0.0.1:${server.port}/api/state`;
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
