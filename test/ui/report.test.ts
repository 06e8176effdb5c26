/**
 * Tests that the HTML of `refit report` needs no server: it opens as a file, sends no request, and passes the checks of
 * axe.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe from 'axe-core';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { uiFiles } from '../../src/cli/dashboard/bundle.ts';
import { pageOf } from '../../src/cli/dashboard/page.ts';
import type { DashboardState } from '../../src/cli/dashboard/state.ts';
import { startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const HOSTILE = '</script><img src=x onerror=alert(1)>';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

async function fileWith(state: DashboardState): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'refit-report-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const file = join(folder, 'report.html');
  await writeFile(file, pageOf({ kind: 'file', files: await uiFiles(), state }));
  return pathToFileURL(file).href;
}

test('a report opens as a file, and explains a node without a server', async () => {
  const why = [{ heading: 'why', lines: [HOSTILE] }];
  const nodes = nodesNamed(12).map((node) => ({ ...node, why }));
  const report = [{ heading: 'Longest nodes', lines: ['w1: 3 min'] }];
  await using visited = await visit(browser, await fileWith(stateWith(nodes, { report })));
  const { page, asked, strays } = visited;
  await page.getByRole('heading', { name: 'Longest nodes' }).waitFor();
  await page.locator('.lane').first().click();
  await page.getByText(HOSTILE).waitFor();
  expect(await page.locator('img').count()).toBe(0);
  expect({ asked: asked.length, strays }).toEqual({ asked: 1, strays: [] });
});

test.each(['light', 'dark'] as const)('axe finds nothing in a report: %s', async (colorScheme) => {
  const report = [{ heading: 'Versions', lines: ['3 workers: from v1 to v2'] }];
  const url = await fileWith(stateWith(nodesNamed(12), { report }));
  await using visited = await visit(browser, url, { colorScheme, bypassCSP: true });
  await visited.page.getByRole('listbox').waitFor();
  await visited.page.evaluate(axe.source);
  const found = await visited.page.evaluate<{ violations: { id: string }[] }>('axe.run()');
  expect(found.violations.map(({ id }) => id)).toEqual([]);
});
