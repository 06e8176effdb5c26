/** Tests the page on a phone, on paper and without a plan, and its icon. */
import axe from 'axe-core';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NodeState } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

const REASON =
  'wave 2 needs approval by UpgradePolicy production, which somebody gives with refit approve';

/** Returns nodes of which every second one has not started and says why. */
function waitingNodes(count: number): NodeState[] {
  return nodesNamed(count).map((node, index) =>
    index % 2 === 0
      ? { ...node, phase: 'done' }
      : { ...node, phase: 'pending', state: 'pending', message: REASON, steps: [] },
  );
}

test.each(['light', 'dark'] as const)(
  'on a phone the reason of a lane wraps and is complete, and axe finds nothing: %s',
  async (colorScheme) => {
    await using server = await serveState(stateWith(waitingNodes(50)));
    const options = { colorScheme, viewport: { width: 400, height: 800 }, bypassCSP: true };
    await using visited = await visit(browser, server.url, options);
    const { page } = visited;
    const lane = page.getByRole('option', { name: 'w1 ' }).first();
    const reason = lane.locator('.reason');
    await reason.waitFor();
    const sizes = await reason.evaluate((element) => ({
      isCut:
        element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth,
      lines: element.clientHeight / 20,
    }));
    expect(sizes.isCut).toBe(false);
    expect(sizes.lines).toBeGreaterThan(1);
    const box = await lane.boundingBox();
    const text = await reason.boundingBox();
    expect((text?.y ?? 0) + (text?.height ?? 0)).toBeLessThanOrEqual(
      (box?.y ?? 0) + (box?.height ?? 0),
    );
    const next = await page.getByRole('option', { name: 'w2 ' }).first().boundingBox();
    expect(next?.y).toBeCloseTo((box?.y ?? 0) + (box?.height ?? 0), 0);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(violations.map(({ id }) => id)).toEqual([]);
  },
);

test('on a phone the End key reaches the last lane of a list with lanes of different heights', async () => {
  await using server = await serveState(stateWith(waitingNodes(100)));
  await using visited = await visit(browser, server.url, { viewport: { width: 400, height: 800 } });
  const { page } = visited;
  await page.getByRole('listbox').focus();
  for (const key of ['End', 'Enter']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'w99', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  const lane = page.getByRole('option', { name: 'w99' });
  const list = await page.getByRole('listbox').boundingBox();
  const box = await lane.boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(
    (list?.y ?? 0) + (list?.height ?? 0),
  );
});

test('on paper the page has all lanes, black on white, and no buttons that control anything', async () => {
  const state = { ...stateWith(waitingNodes(100)), allowsActions: true };
  await using server = await serveState(state);
  await using visited = await visit(browser, server.url, { colorScheme: 'dark' });
  const { page } = visited;
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await expect.poll(async () => await page.locator('.lane').count()).toBe(100);
  expect(await page.getByRole('button').allTextContents()).toEqual([
    expect.stringContaining('Plan autopilot'),
  ]);
  const colours = await page.evaluate<string[]>(
    `(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))`,
  );
  expect(colours).toEqual(['rgb(0, 0, 0)', 'rgb(255, 255, 255)']);
  const last = await page.getByRole('option', { name: 'w99' }).boundingBox();
  const list = await page.getByRole('listbox').boundingBox();
  expect(list?.height).toBeGreaterThanOrEqual((last?.y ?? 0) - (list?.y ?? 0));
  await page.emulateMedia({ media: 'screen' });
  await expect.poll(async () => await page.locator('.lane').count()).toBeLessThan(60);
});

test('a cluster without a plan gets the first three steps', async () => {
  await using server = await serveState({ ...stateWith([]), plans: [] });
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByText('There is no plan. The first three steps:').waitFor();
  expect(await page.locator('main ol code').allTextContents()).toEqual([
    'refit ready --to VERSION',
    'refit preview -f plan.yaml',
    'kubectl apply -f plan.yaml',
  ]);
  expect(await page.title()).toBe('Refit');
});

test('the icon of the page is a picture that the policy of the page allows', async () => {
  await using server = await serveState(stateWith(nodesNamed(3)));
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  const href = await page.locator('link[rel=icon]').getAttribute('href');
  const width = await page.evaluate<number>(`new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image.naturalWidth);
    image.onerror = () => reject(new Error('refused'));
    image.src = ${JSON.stringify(href)};
  })`);
  expect(width).toBeGreaterThan(0);
  expect(strays).toEqual([]);
});
