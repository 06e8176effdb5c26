/** Starts one browser and one dashboard for a test file, and notes each address that a page asks for. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import type { Demonstration } from '../../sandbox/start/demonstration.ts';
import type { Act, Preview } from '../../src/cli/dashboard/answers.ts';
import { uiFiles } from '../../src/cli/dashboard/bundle.ts';
import { runDashboard } from '../../src/cli/dashboard/dashboard-command.ts';
import { type DashboardServer, serveDashboard } from '../../src/cli/dashboard/server.ts';
import type { DashboardState, NodeEvents, RunShown, Said } from '../../src/cli/dashboard/state.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { systemClock } from '../../src/util/clock.ts';
import { fetchChromium } from '../../tools/browser/chromium.ts';

export async function startBrowser(): Promise<Browser> {
  const { executablePath, env } = await fetchChromium();
  // In a container, Chromium cannot use its sandbox as root.
  return await chromium.launch({
    executablePath,
    args: ['--no-sandbox'],
    env: { ...(process.env as Record<string, string>), ...env },
  });
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /**
   * The requests of the page to other servers than `origin`, and the errors in its console, such as requests that its
   * policy refused.
   */
  readonly strays: readonly string[];
  readonly asked: readonly string[];
}

export async function visit(browser: Browser, url: string, options = {}): Promise<Visit> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const strays: string[] = [];
  const asked: string[] = [];
  const { origin } = new URL(url);
  page.on('request', (request) => {
    const { href, origin: of, protocol } = new URL(request.url());
    asked.push(href);
    if (of !== origin && protocol !== 'data:') strays.push(href);
  });
  page.on('console', (message) => {
    if (message.type() === 'error') strays.push(message.text());
  });
  page.on('pageerror', (error) => strays.push(error.message));
  await page.goto(url);
  return { page, strays, asked, [Symbol.asyncDispose]: async () => await context.close() };
}

/** Runs the whole command against a cluster, and resolves with the URL that it prints. */
export async function startDashboard(
  kubeconfig: string,
  flags: { allowActions?: boolean; as?: string } = {},
) {
  const stop = new AbortController();
  const printed = Promise.withResolvers<string>();
  const write = (text: string): void => {
    const url = /http:\S+/.exec(text)?.[0];
    if (url !== undefined) printed.resolve(url);
  };
  const output = {
    isTerminal: false,
    hasColours: false,
    size: () => ({ columns: 80, rows: 24 }),
    write,
  };
  const parts = { modules: MODULES, clock: systemClock, output, abort: stop.signal };
  const ended = runDashboard({ kubeconfig, port: 0, open: false, ...flags }, parts);
  ended.catch((error: unknown) => printed.reject(error));
  return {
    url: await printed.promise,
    [Symbol.asyncDispose]: async () => {
      stop.abort(new Error('the test is over'));
      await ended;
    },
  };
}

/** What the page asks for only when it shows it. */
interface AskedLater {
  /** The earlier run with the name `a`. */
  readonly run?: RunShown;
  /** The Events about every node. */
  readonly nodeEvents?: NodeEvents;
}

/** Serves one state, without a cluster. `said` is the explanation of every node. Without `act`, nothing is carried out. */
export async function serveState(
  state: DashboardState,
  preview: Preview = async () => await Promise.resolve({ isDone: true, lines: [] }),
  said: readonly Said[] = [],
  act?: Act,
  { run, nodeEvents = { events: [] } }: AskedLater = {},
): Promise<DashboardServer & AsyncDisposable> {
  const server = await serveDashboard({
    port: 0,
    files: await uiFiles(),
    explain: () => said,
    eventsOf: async () => await Promise.resolve(nodeEvents),
    explainRun: (_plan, name) => (name === 'a' ? run : undefined),
    preview,
    act,
  });
  server.publish(state);
  return { ...server, [Symbol.asyncDispose]: async () => await server.close() };
}

/**
 * Runs what `npm start` shows, and resolves when its plan is applied. `over` resolves when the demonstration has ended.
 * Everything that still runs ends with the test.
 */
export async function startDemonstration(demonstration: Demonstration) {
  const directory = await mkdtemp(join(tmpdir(), 'refit-ui-'));
  const started = new AsyncDisposableStack();
  const abort = new AbortController();
  const applied = Promise.withResolvers<void>();
  const kept = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const end = async (): Promise<void> => {
    kept.resolve();
    abort.abort(new Error('the test is over'));
    await running.catch(() => undefined);
    await started.disposeAsync();
  };
  onTestFinished(async () => {
    await end();
    await rm(directory, { recursive: true, force: true });
  });
  await mkdir(join(directory, 'pids'));
  const running = demonstration.run(
    {},
    {
      directory,
      started,
      abort: abort.signal,
      say: (line) => void (/^Plans? applied/.test(line) && applied.resolve()),
      keep: async () => {
        over.resolve();
        await kept.promise;
      },
    },
  );
  await Promise.race([applied.promise, running]);
  return { directory, kubeconfig: join(directory, 'kubeconfig.json'), over: over.promise, end };
}
