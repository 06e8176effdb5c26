/** Measures in a real browser what the page of 5,000 nodes costs: until it is there, a step of a scroll, and a key of a search. */
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import { uiFiles } from '../../src/cli/dashboard/bundle.ts';
import { serveDashboard } from '../../src/cli/dashboard/server.ts';
import { nodesNamed, stateWith } from '../../test/ui/states.ts';
import { fetchChromium } from '../../tools/browser/chromium.ts';
import type { Figure } from '../figures.ts';
import { median } from '../statistics.ts';

const NODES = 5000;
const ROUNDS = 5;
const STEPS = 40;
/** Each step shows other lanes. */
const SCROLL = `document.querySelector('.lanes').scrollTop = step * 400;`;
/** The search alternates between two texts, so that each step changes the list. */
const TYPE = `const field = document.querySelector('input[type="search"]');
  field.value = step % 2 === 0 ? 'w9' : 'w99';
  field.dispatchEvent(new Event('input', { bubbles: true }));`;

/** Each value is the median of the rounds. A frame is the whole work of the page between two pictures. */
export async function measurePage(): Promise<readonly Figure[]> {
  const { executablePath, env } = await fetchChromium();
  await using opened = new AsyncDisposableStack();
  const browser = await chromium.launch({
    executablePath,
    // In a container, Chromium cannot use its sandbox as root.
    args: ['--no-sandbox'],
    env: { ...(process.env as Record<string, string>), ...env },
  });
  opened.defer(async () => await browser.close());
  const server = await serveDashboard({
    port: 0,
    files: await uiFiles(),
    explain: () => [],
    explainRun: () => undefined,
    eventsOf: async () => await Promise.resolve({ events: [] }),
    preview: async () => await Promise.resolve({ isDone: true, lines: [] }),
    act: undefined,
  });
  opened.defer(async () => await server.close());
  server.publish(stateWith(nodesNamed(NODES)));
  const costs = { paint: [] as number[], scroll: [] as number[], search: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const cost = await costOfVisit(browser, server.url);
    costs.paint.push(cost.paint);
    costs.scroll.push(cost.scroll);
    costs.search.push(cost.search);
  }
  const madeOf = `median of ${ROUNDS} visits, ${NODES} nodes`;
  const figure = (key: string, values: readonly number[], limit: number): Figure => ({
    key,
    value: median(values),
    unit: 'ms',
    goal: { bound: 'most', limit },
    madeOf,
  });
  return [
    figure('ui.firstPaintCpuMs', costs.paint, 1000),
    figure('ui.scrollFrameMs', costs.scroll, 50),
    figure('ui.searchFrameMs', costs.search, 50),
  ];
}

interface CostOfVisit {
  readonly paint: number;
  readonly scroll: number;
  readonly search: number;
}

async function costOfVisit(browser: Browser, url: string): Promise<CostOfVisit> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable');
    await page.goto(url);
    await page.locator('.lane').first().waitFor();
    const paint = await taskMs(session);
    return {
      paint,
      scroll: await frameMs(page, session, SCROLL),
      search: await frameMs(page, session, TYPE),
    };
  } finally {
    await context.close();
  }
}

/** Resolves with the milliseconds of CPU time of the page for each step of the script. */
async function frameMs(page: Page, session: CDPSession, script: string): Promise<number> {
  const before = await taskMs(session);
  await page.evaluate(`(async () => {
    for (let step = 0; step < ${STEPS}; step++) {
      ${script}
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }
  })()`);
  return ((await taskMs(session)) - before) / STEPS;
}

/** Resolves with the milliseconds that the page has spent on tasks: script, style, layout and paint. */
async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN);
}
