/**
 * Tests texts that a viewer gives to the preview of the served dashboard. Such a text may be made to fill the memory, or to keep the
 * process busy that renews the Lease of the controller.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { previewText } from '../../src/cli/dashboard/preview.ts';
import { LONGEST_TEXT } from '../../src/cli/dashboard/state.ts';
import { readForeignPlans } from '../../src/cli/preview/foreign/read-foreign-plans.ts';
import { createPreviewTurns } from '../../src/cli/served-dashboard/preview-turns.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { systemClock } from '../../src/util/clock.ts';
import { sendJson, startStubServer, whenReady } from '../faults/stub-server.ts';
import { buildPlan, buildUpdate, listed } from '../support/builders/plans.ts';

const abort = new AbortController().signal;
const read = async (text: string) =>
  await readForeignPlans(text.slice(0, LONGEST_TEXT), 'the text', 10, abort);

/** Starts an API server that tells everybody its kinds, and lets nobody list an object. */
async function withoutRights() {
  const script = whenReady(({ url }, response) =>
    /^\/apis\/[^/]+\/[^/]+$/.test(url)
      ? sendJson(response, 200, { resources: [{ name: 'plans' }] })
      : sendJson(response, 403, {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          code: 403,
          reason: 'Forbidden',
          message: 'plans is forbidden: User "eve" cannot list resource "plans"',
        }),
  );
  const server = await startStubServer(script);
  const folder = await mkdtemp(join(tmpdir(), 'refit-preview-'));
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  const kubeconfig = join(folder, 'kubeconfig');
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${server.port}` } }],
    users: [{ name: 'a', user: { token: 'eve' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  return kubeconfig;
}

test('the text of a viewer without rights is not read at all', async () => {
  const kubeconfig = await withoutRights();
  const parts = { modules: MODULES, clock: systemClock, abort };
  const { isDone, lines } = await previewText('a: [', { kubeconfig }, parts);
  expect({ isDone, text: lines.join() }).toEqual({
    isDone: false,
    text: expect.stringMatching(/forbidden|no right/) as unknown,
  });
  expect(lines.join()).not.toContain('is not YAML');
});

test.each([
  ['nested lists', '- '.repeat(LONGEST_TEXT / 2)],
  ['empty items', '-\n'.repeat(LONGEST_TEXT / 2)],
  ['a flow list', `[${'a,'.repeat(LONGEST_TEXT / 2 - 1)}]`],
  ['empty documents', '---\n'.repeat(LONGEST_TEXT / 4)],
  ['aliases of a long text', `- &a ${'x'.repeat(60_000)}\n${'- *a\n'.repeat(900)}`],
])(
  'a text of 256 KiB with %s is refused, and the main thread continues meanwhile',
  { timeout: 30_000 },
  async (_name, text) => {
    const began = performance.eventLoopUtilization();
    await expect(read(text)).rejects.toMatchObject({ code: 'REFIT_FILE' });
    const { utilization } = performance.eventLoopUtilization(began);
    // A parse in the main thread would leave it no idle time.
    expect(utilization).toBeLessThan(0.5);
  },
);

test('a plan that names thousands of nodes in almost 256 KiB is read', async () => {
  const names = Array.from({ length: 9000 }, (_, index) => `worker-${index}.example.com`);
  const k0supdate = buildUpdate({ targets: { workers: listed(...names) } });
  const text = JSON.stringify(buildPlan({ commands: [{ k0supdate }] }));
  expect(text.length).toBeGreaterThan(0.75 * LONGEST_TEXT);
  expect(text.length).toBeLessThan(LONGEST_TEXT);
  const { plans } = await read(text);
  expect(plans).toHaveLength(1);
});

test('a user with many previews delays another user by one preview at most', async () => {
  const turns = createPreviewTurns(systemClock);
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const done = { isDone: true, lines: [] };
  const preview = async (user: string) =>
    await turns(user, async () => {
      order.push(user);
      await gate.promise;
      return done;
    });
  const all = ['eve', 'eve', 'eve', 'ada'].map(preview);
  gate.resolve();
  const results = await Promise.all(all);
  expect(order).toEqual(['eve', 'ada']);
  expect(results.map(({ isDone }) => isDone)).toEqual([true, false, false, true]);
});
