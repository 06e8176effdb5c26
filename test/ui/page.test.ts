/** Shows that everybody can read the page: by keyboard, on a narrow screen, with a screen reader, and with thousands of nodes. */
import axe from 'axe-core';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
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
    const state = { ...stateWith(nodesNamed(40)), allowsActions: true };
    await using server = await serveState(state);
    const options = { colorScheme, viewport: { width, height: 900 }, bypassCSP: true };
    await using visited = await visit(browser, server.url, options);
    const { page } = visited;
    await page.getByRole('option', { name: 'w2', exact: false }).first().click();
    await page.getByRole('button', { name: 'Close' }).waitFor();
    await page.evaluate(axe.source);
    expect(await violationsOn(page)).toEqual([]);
    await page.getByRole('button', { name: 'Abort…' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await violationsOn(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  },
);

async function violationsOn(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate<{
    violations: { id: string; nodes: { html: string }[] }[];
  }>('axe.run()');
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

test('the keyboard alone opens a node', async () => {
  await using server = await serveState(stateWith(nodesNamed(40)));
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByRole('listbox').focus();
  for (const key of ['End', 'ArrowUp', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'w38' }).waitFor();
});

test('5,000 nodes: script and layout of a scroll step take at most 1.5 times as long as with 100', async () => {
  await using few = await showLanes(100);
  await using many = await showLanes(5000);
  const costs = { few: [] as number[], many: [] as number[] };
  // In turns, because others use this machine too.
  for (let round = 0; round < ROUNDS; round++) {
    costs.few.push(await costOfRound(few));
    costs.many.push(await costOfRound(many));
  }
  expect(await many.page.getByRole('option').count()).toBeLessThan(60);
  expect(median(costs.many) / median(costs.few)).toBeLessThanOrEqual(1.5);
});

interface Shown extends AsyncDisposable {
  readonly page: Page;
  readonly session: CDPSession;
}

async function showLanes(count: number): Promise<Shown> {
  const opened = new AsyncDisposableStack();
  const server = opened.use(await serveState(stateWith(nodesNamed(count))));
  const { page } = opened.use(await visit(browser, server.url));
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await page.getByRole('option', { name: 'w0', exact: false }).first().waitFor();
  return { page, session, [Symbol.asyncDispose]: async () => await opened.disposeAsync() };
}

/** An odd number, so that one round is in the middle. */
const ROUNDS = 9;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
const STEPS = 40;

/** Returns the seconds of script, style and layout for one step. */
async function costOfRound({ page, session }: Shown): Promise<number> {
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
