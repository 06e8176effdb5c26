/**
 * Tests the dashboard of a plan in progress that follows an earlier plan: lanes with bars, waits and history. With
 * REFIT_PICTURES=1, the tests take the pictures of the README and of the guide.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { autopilot } from '../../sandbox/start/autopilot.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import type { NodeState } from '../../src/cli/dashboard/state.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { ROOT } from '../repo/tree.ts';
import { serveState, startBrowser, startDashboard, startDemonstration, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const TAKES_PICTURES = process.env['REFIT_PICTURES'] === '1';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

test('a plan in its middle: bars with a legend and times, groups, what it waits for, and the run before', async () => {
  const { directory, kubeconfig, over } = await startDemonstration(autopilot);
  await using dashboard = await startDashboard(kubeconfig);
  await using visited = await visit(browser, dashboard.url);
  const { page, strays } = visited;
  await page.getByText('done 8/8', { exact: true }).waitFor({ timeout: 60_000 });
  await over;
  using client = createClient(await loadClusterConfig({ path: kubeconfig }), { userAgent: 'test' });
  const text = await readFile(join(directory, 'plans', 'plan.yaml'), 'utf8');
  const [, plan] = parseAllDocuments(text).map((document) => document.toJS() as Plan);
  if (plan === undefined) throw new Error('the file has no Plan');
  await client.delete(plans, plan.metadata.name);
  await client.create(plans, plan);

  await page.getByText(/^running [4-6]\/8$/).waitFor({ timeout: 60_000 });
  await expect
    .poll(async () => await page.locator('.lane.done .bar .step').count())
    .toBeGreaterThan(3);
  await page.locator('.lane.moving .bar .step').first().waitFor();
  await page.getByRole('list', { name: 'Steps' }).getByText('download').waitFor();
  expect(await page.locator('.axis .tick').allTextContents()).toHaveLength(5);
  await page.getByText(/^workers to v1\.36\.4\+k0s\.0: \d of 5 done$/).waitFor();
  await page
    .getByRole('region', { name: 'History' })
    .getByText(/v1\.36\.3\+k0s\.2: done 8\/8/)
    .waitFor();
  if (TAKES_PICTURES) await takePictures(page);
  expect(strays).toEqual([]);
});

async function takePictures(page: Page): Promise<void> {
  await page.setViewportSize({ width: 1200, height: 900 });
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const path = join(ROOT, 'docs', `dashboard-${colorScheme}.png`);
    await page.screenshot({ path, fullPage: true });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 400, height: 800 });
  await page.screenshot({ path: join(ROOT, 'docs', 'dashboard-phone.png') });
}

/** Returns 1,000 nodes of which one has failed, far down in the list. */
function thousandNodes(): NodeState[] {
  return nodesNamed(1000).map((node, index) => {
    if (index === 700)
      return {
        ...node,
        phase: 'failed',
        state: 'failed',
        message: 'the download answered 404 Not Found',
      };
    if (index < 700) return { ...node, phase: 'done' };
    return { ...node, phase: 'pending', state: 'pending', message: '', steps: [] };
  });
}

test('the one failed node among 1,000 is the first lane that the page shows', async () => {
  const progress = ['70 %', 'about 40 min left'];
  const plan = { progress, done: 700, total: 1000, percent: 70 };
  await using server = await serveState({ ...stateWith(thousandNodes(), plan), cluster: 'prod' });
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const first = page.locator('.lane').first();
  await first.waitFor();
  expect(await first.textContent()).toContain('w700');
  if (!TAKES_PICTURES) return;
  await page.setViewportSize({ width: 1200, height: 900 });
  await page.screenshot({ path: join(ROOT, 'docs', 'dashboard-1000-nodes.png') });
});
