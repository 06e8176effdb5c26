/** Shows that everybody can read the page: by keyboard, on a narrow screen, with a screen reader, and with thousands of nodes. */
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT } from '../repo/tree.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [1280, 320].map((width) => ({ colorScheme, width })),
);

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

test.each(LOOKS)(
  'axe finds nothing: $colorScheme, $width pixels',
  async ({ colorScheme, width }) => {
    await using server = await serveState(stateWith(nodesNamed(40)));
    const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true };
    await using visited = await visit(browser, server.url, options);
    const { page } = visited;
    await page.getByRole('option', { name: 'w2', exact: false }).first().click();
    await page.getByRole('button', { name: 'Close' }).waitFor();
    await page.evaluate(axe.source);
    const found = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      'axe.run()',
    );
    expect(found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    if (process.env['REFIT_PICTURES'] === '1' && width > 1000)
      await page.screenshot({ path: join(ROOT, 'docs', `dashboard-${colorScheme}.png`) });
  },
);

test('the keyboard alone opens a node', async () => {
  await using server = await serveState(stateWith(nodesNamed(40)));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('listbox').focus();
  for (const key of ['End', 'ArrowUp', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'w38' }).waitFor();
});

test('5,000 nodes scroll as 100 do', async () => {
  const few = await costOfScrolling(100);
  const many = await costOfScrolling(5000);
  expect(many / few).toBeLessThanOrEqual(1.5);
});

/** Returns the seconds of script, style and layout for one step. The least of several rounds: others use this machine too. */
async function costOfScrolling(count: number): Promise<number> {
  await using server = await serveState(stateWith(nodesNamed(count)));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await page.getByRole('option', { name: 'w0', exact: false }).first().waitFor();
  const rounds: number[] = [];
  for (let round = 0; round < 7; round++) rounds.push(await costOfRound(page, session));
  expect(await page.getByRole('option').count()).toBeLessThan(60);
  return Math.min(...rounds);
}

const STEPS = 40;

async function costOfRound(page: Page, session: CDPSession): Promise<number> {
  const before = await spentIn(session);
  await page.evaluate(`(async () => {
    const box = document.querySelector('.lanes');
    for (let step = 0; step < ${STEPS}; step++) {
      box.scrollTop = step * 60;
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }
  })()`);
  return ((await spentIn(session)) - before) / STEPS;
}

async function spentIn(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  const wanted = ['ScriptDuration', 'LayoutDuration', 'RecalcStyleDuration'];
  return metrics
    .filter(({ name }) => wanted.includes(name))
    .reduce((sum, { value }) => sum + value, 0);
}
