/**
 * Tests in a real browser the actions about which the page asks first: it shows what the action would do before the
 * viewer can confirm it.
 */
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ActionRequest, ActionResult, PagePlan } from '../../src/cli/dashboard/state.ts';
import { serveState, startBrowser, visit } from './browser.ts';
import { nodesNamed, stateWith } from './states.ts';

const HOSTILE = '<img src=x onerror="document.title=1">';
const SEEN = 'ab'.repeat(32);
const ENDED = {
  isOpen: false,
  phase: 'done',
  rollBack: { kind: 'command', takesImage: true },
} as const;

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => await browser.close());

/** Answers each request of a button, and records it. Before the confirmation, it says what the action would do. */
function recorder(answer: Partial<ActionResult> = {}) {
  const sent: ActionRequest[] = [];
  const act = async (request: ActionRequest): Promise<ActionResult> => {
    sent.push(request);
    const isDry = 'isConfirmed' in request && !request.isConfirmed;
    const lines = [isDry ? `w1  worker  ${HOSTILE}` : 'It is done.'];
    return await Promise.resolve({ isDone: true, lines, id: SEEN, ...answer });
  };
  return { sent, act };
}

async function serve(plan: Partial<PagePlan>, act: (of: ActionRequest) => Promise<ActionResult>) {
  const state = { ...stateWith(nodesNamed(3), plan), allowsActions: true };
  return await serveState(state, undefined, [], act);
}

function buttonOn(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true });
}

test('a roll-back needs a reason, shows what changes as text, and needs the typed word yes', async () => {
  const { sent, act } = recorder();
  await using server = await serve(ENDED, act);
  await using visited = await visit(browser, server.url);
  const { page, strays } = visited;
  await buttonOn(page, 'Roll back…').click();
  const look = buttonOn(page, 'Show what changes');
  expect(await look.isDisabled()).toBe(true);
  await page.getByLabel('Reason (Refit records it)').fill(' ');
  expect(await look.isDisabled()).toBe(true);
  await page.getByLabel('Reason (Refit records it)').fill('bad release');
  await page.getByLabel('Image that installs the older version').fill('mirror/k3s-upgrade');
  await look.click();
  await page.getByText(HOSTILE).waitFor();
  expect(await page.locator('img').count()).toBe(0);
  const yes = buttonOn(page, 'Roll back');
  const typed = page.getByLabel('Go back? Type yes:');
  for (const word of ['', 'y', 'Yes']) {
    await typed.fill(word);
    expect(await yes.isDisabled()).toBe(true);
  }
  await typed.fill('yes');
  await yes.click();
  await page.getByText('It is done.').waitFor();
  const request = {
    action: 'rollback',
    plan: 'autopilot//autopilot',
    reason: 'bad release',
    image: 'mirror/k3s-upgrade',
  };
  expect(sent).toEqual([
    { ...request, isConfirmed: false },
    { ...request, isConfirmed: true, typed: 'yes', seen: SEEN },
  ]);
  expect(strays).toEqual([]);
});

test('another reason hides what the page has shown, so nobody confirms something else', async () => {
  const { sent, act } = recorder();
  await using server = await serve(ENDED, act);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await buttonOn(page, 'Roll back…').click();
  const reason = page.getByLabel('Reason (Refit records it)');
  await reason.fill('a');
  await buttonOn(page, 'Show what changes').click();
  await buttonOn(page, 'Roll back').waitFor();
  await reason.fill('b');
  await buttonOn(page, 'Show what changes').waitFor();
  expect(await buttonOn(page, 'Roll back').count()).toBe(0);
  expect(await page.getByText(HOSTILE).count()).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(sent).toHaveLength(1);
});

test('what the server refuses is shown in the question, and cannot be confirmed', async () => {
  const lines = ['Refused: the user ada has no right to create plans.'];
  const { act } = recorder({ isDone: false, lines });
  await using server = await serve({ leftOut: ['w2'] }, act);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await buttonOn(page, 'Retry left-out nodes…').click();
  await page.getByRole('dialog').getByText('has no right to create plans').waitFor();
  expect(await buttonOn(page, 'Retry them').count()).toBe(0);
});

test('the keyboard alone opens a window: the length is 2h at first, and the answer gets the focus', async () => {
  const { sent, act } = recorder();
  await using server = await serve({ closed: 'blackout' }, act);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await buttonOn(page, 'Open the window…').focus();
  await page.keyboard.press('Enter');
  const length = page.getByLabel('How long, such as 2h or 90m; at most 168h');
  expect(await length.inputValue()).toBe('2h');
  await length.fill('90m');
  // The first key leads to the field of the reason, the second one to Cancel, the third one to the button.
  for (const key of ['Tab', 'Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
  await page.getByText(HOSTILE).waitFor();
  const focused = page.locator(':focus');
  await expect.poll(async () => await focused.getAttribute('role')).toBe('status');
  // A second press of the same key must not confirm.
  await page.keyboard.press('Enter');
  expect(sent).toHaveLength(1);
  for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
  await page.getByText('It is done.').waitFor();
  const request = { action: 'start', plan: 'autopilot//autopilot', for: '90m', reason: '' };
  expect(sent.at(-1)).toEqual({ ...request, blackouts: true, isConfirmed: true });
});

test('each check that does not pass has a button that accepts it, and left-out nodes have one that retries them', async () => {
  const { sent, act } = recorder();
  await using server = await serve({ acceptable: ['errors', 'disk'], leftOut: ['w2'] }, act);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  const group = page.getByRole('group', { name: 'Let nodes start or go back' });
  await group.waitFor();
  expect(await group.getByRole('button').allTextContents()).toEqual([
    'Accept errors…',
    'Accept disk…',
    'Retry left-out nodes…',
  ]);
  await buttonOn(page, 'Accept disk…').click();
  await buttonOn(page, 'Show what changes').click();
  await buttonOn(page, 'Accept the failure').click();
  await page.getByText('It is done.').waitFor();
  await buttonOn(page, 'Retry left-out nodes…').click();
  await buttonOn(page, 'Retry them').click();
  await expect.poll(() => sent.length).toBe(4);
  const plan = 'autopilot//autopilot';
  expect(sent.at(1)).toEqual({
    action: 'accept',
    plan,
    check: 'disk',
    reason: '',
    isConfirmed: true,
  });
  expect(sent.at(3)).toEqual({ action: 'retry-skipped', plan, isConfirmed: true });
});

test('a plan that offers nothing has none of these buttons, and a way back by hand is a sentence', async () => {
  const { act } = recorder();
  const sentence = 'Going back is done by hand: write the older patch into the manifest.';
  const byHand = { kind: 'byHand', sentence } as const;
  await using server = await serve({ isOpen: false, phase: 'done', rollBack: byHand }, act);
  await using visited = await visit(browser, server.url);
  const { page } = visited;
  await page.getByText(sentence).waitFor();
  expect(await page.getByRole('group', { name: 'Let nodes start or go back' }).count()).toBe(0);
});

test.each(['light', 'dark'] as const)(
  'axe finds nothing in the question about a roll-back: %s',
  async (colorScheme) => {
    const { act } = recorder();
    await using server = await serve(ENDED, act);
    const viewport = { width: 320, height: 700 };
    const options = { colorScheme, viewport, bypassCSP: true };
    await using visited = await visit(browser, server.url, options);
    const { page } = visited;
    await buttonOn(page, 'Roll back…').click();
    await page.getByLabel('Reason (Refit records it)').fill('a');
    await buttonOn(page, 'Show what changes').click();
    await page.getByLabel('Go back? Type yes:').waitFor();
    await page.evaluate(axe.source);
    const found = await page.evaluate<{ violations: { id: string }[] }>('axe.run()');
    expect(found.violations.map(({ id }) => id)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
  },
);
