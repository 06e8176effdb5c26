/** Tests the check that holds a run until the cluster is ready for its version. */
import { expect, test, vi } from 'vitest';
import { sendJson, sendStatus, startStubServer, whenReady } from '../../test/faults/stub-server.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { T0 } from '../../test/support/clock/times.ts';
import { createClient } from '../kube/transport/http-client.ts';
import type { ReadyFinding } from '../ready/finding.ts';
import { findingOf, readinessAsker } from './readiness-asker.ts';

const TO = 'v1.37.0';
const PATIENCE = { timeout: 30_000, interval: 10 };
const found = (state: ReadyFinding['state'], message: string, object?: string): ReadyFinding => ({
  check: 'settings',
  state,
  message,
  ...(object !== undefined && { object }),
});

test.each([
  ['nothing', [], 'passing', 'no blocker for v1.37.0'],
  ['a warning', [found('warning', 'w')], 'passing', 'no blocker for v1.37.0'],
  [
    'what may not be read',
    [found('unknown', 'u')],
    'passing',
    'no blocker for v1.37.0; 1 question without an answer',
  ],
  [
    'a blocker with an object',
    [found('blocker', 'it is bad', 'Node w1')],
    'failing',
    'Node w1: it is bad; `refit ready --to v1.37.0` shows all',
  ],
  [
    'many blockers',
    ['a', 'b', 'c', 'd', 'e'].map((text) => found('blocker', text)),
    'failing',
    'a; b; c, and 2 more; `refit ready --to v1.37.0` shows all',
  ],
])('a report with %s is judged', (_, findings, state, message) => {
  expect(findingOf({ to: TO, from: [], findings })).toEqual({ state, message });
});

test('the answer comes in the background, is valid for a while, and belongs to one version', async () => {
  let lists = 0;
  await using server = await startStubServer(
    whenReady(({ url }, response) => {
      if (url.startsWith('/api/v1/nodes')) lists++;
      if (url.startsWith('/version')) sendJson(response, 200, { gitVersion: 'v1.37.0' });
      else sendJson(response, 200, { metadata: {}, items: [] });
    }),
  );
  using client = createClient(server.config);
  const clock = new FakeClock(T0);
  const abort = new AbortController().signal;
  const parts = { client, clock, abort, config: server.config, dialects: [], environment: {} };
  const ask = readinessAsker({ ...parts, namespace: 'refit-system' });
  const askFor = (to: string) => ask({ kind: 'readiness', name: 'ready', to });
  expect(askFor(TO)).toMatchObject({ state: 'unknown', isPending: true });
  await vi.waitFor(() => expect(askFor(TO).state).toBe('passing'), PATIENCE);
  expect(lists).toBe(1);
  await clock.advance(4 * 60_000);
  expect(askFor(TO).state).toBe('passing');
  expect(lists).toBe(1);
  await clock.advance(2 * 60_000);
  expect(askFor(TO).state).toBe('passing');
  await vi.waitFor(() => expect(lists).toBe(2), PATIENCE);
  expect(askFor('v1.36.0')).toMatchObject({ isPending: true });
  await vi.waitFor(() => expect(askFor('v1.36.0').state).toBe('failing'), PATIENCE);
});

test('an API server that fails to answer holds the run, and one that lacks the kind does not', async () => {
  let code = 500;
  await using server = await startStubServer(
    whenReady(({ url }, response) => {
      if (url.startsWith('/version')) sendJson(response, 200, { gitVersion: 'v1.37.0' });
      else if (url.includes('/poddisruptionbudgets')) sendStatus(response, code, 'InternalError');
      else sendJson(response, 200, { metadata: {}, items: [] });
    }),
  );
  using client = createClient(server.config);
  const clock = new FakeClock(T0);
  const abort = new AbortController().signal;
  const parts = { client, clock, abort, config: server.config, dialects: [], environment: {} };
  const ask = readinessAsker({ ...parts, namespace: 'refit-system' });
  const askNow = () => ask({ kind: 'readiness', name: 'ready', to: TO });
  await vi.waitFor(() => expect(askNow()).not.toHaveProperty('isPending'), PATIENCE);
  expect(askNow()).toMatchObject({
    state: 'unknown',
    message: expect.stringMatching(/^1 question without an answer: .*InternalError/u) as string,
  });
  code = 404;
  await clock.advance(61_000);
  await vi.waitFor(() => expect(askNow().state).toBe('passing'), PATIENCE);
});
