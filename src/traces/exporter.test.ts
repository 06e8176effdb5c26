/** Tests the delivery of spans: batches, retries, an unreachable collector, and what logs show. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Script, startStubServer } from '../../test/faults/stub-server.ts';
import { buildLog } from '../../test/support/builders/logs.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { createTraceExporter, GIVE_UP_MS, MOST_IN_REQUEST, MOST_QUEUED } from './exporter.ts';
import type { Span } from './otlp.ts';

const PATIENCE = { timeout: 30_000 };
const SECRET = 'T0K3N-0F-THESE-TESTS';
const NOWHERE = new URL('http://127.0.0.1:1/v1/traces');

function spans(count: number): Span[] {
  return Array.from({ length: count }, (_, index) => ({
    traceId: 'a'.repeat(32),
    spanId: String(index).padStart(16, '0'),
    name: 'upgrade node',
    from: 0,
    to: 1,
    attributes: {},
  }));
}

/** Runs an exporter until the test ends. */
function exporterTo(url: URL) {
  const clock = new FakeClock();
  const log: string[] = [];
  const counts: Record<string, number> = {};
  const exporter = createTraceExporter({
    url,
    headers: { authorization: `Bearer ${SECRET}` },
    resource: { 'service.name': 'refit' },
    version: '1',
    environment: {},
    clock,
    random: () => 0.5,
    log: buildLog(log, 'debug'),
    metrics: {
      spansEnded: (outcome, count) => {
        counts[outcome] = (counts[outcome] ?? 0) + count;
      },
    },
  });
  const stop = new AbortController();
  const ended = exporter.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await ended;
  };
  onTestFinished(end);
  return { exporter, clock, log, counts, end };
}

async function collector(script: Script) {
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return { server, url: new URL(`${server.config.server}/v1/traces`) };
}

test('spans are sent with POST as JSON, in requests of a bounded size', async () => {
  const { server, url } = await collector((_request, response) => response.end('{}'));
  const { exporter, counts } = exporterTo(url);
  exporter.add(spans(MOST_IN_REQUEST + 1));
  await vi.waitFor(() => expect(counts['sent']).toBe(MOST_IN_REQUEST + 1), PATIENCE);
  expect(server.requests).toHaveLength(2);
  expect(server.requests[0]).toMatchObject({
    method: 'POST',
    url: '/v1/traces',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${SECRET}` },
  });
  expect(exporter.room()).toBe(MOST_QUEUED);
});

test('a busy collector gets the same request again, after the time that it asks for', async () => {
  let status = 503;
  const { server, url } = await collector((_request, response) =>
    response.writeHead(status, { 'retry-after': '30' }).end(SECRET),
  );
  const { exporter, clock, counts, log } = exporterTo(url);
  exporter.add(spans(1));
  await vi.waitFor(() => expect(log).toHaveLength(1), PATIENCE);
  status = 200;
  await clock.advance(29_000);
  expect(server.requests).toHaveLength(1);
  await clock.advance(1_000);
  await vi.waitFor(() => expect(counts).toMatchObject({ sent: 1 }), PATIENCE);
  expect(server.requests[1]?.body).toBe(server.requests[0]?.body);
  expect(log.join()).toContain('it answered 503 Service Unavailable');
  expect(log.join()).not.toContain(SECRET);
});

test.each([
  ['400', 400, '', { rejected: 2 }],
  ['a redirect, which is not followed', 302, '', { rejected: 2 }],
  ['413', 413, '', { rejected: 2 }],
  ['success in too many words', 200, 'x'.repeat(100 * 1024), { sent: 2 }],
  ['success for a part', 200, '{"partialSuccess":{"rejectedSpans":"1"}}', { sent: 1, rejected: 1 }],
  [
    'success with a part that is no number',
    200,
    '{"partialSuccess":{"rejectedSpans":{"valueOf":1,"toString":1}}}',
    { sent: 2 },
  ],
])('after %s nothing is sent again', async (_name, status, body, outcome) => {
  const { server, url } = await collector((_request, response) =>
    response.writeHead(status, { location: '/elsewhere' }).end(body),
  );
  const { exporter, clock, counts } = exporterTo(url);
  exporter.add(spans(2));
  await vi.waitFor(() => expect(counts).toMatchObject(outcome), PATIENCE);
  await clock.advance(GIVE_UP_MS);
  expect(server.requests).toHaveLength(1);
});

test('without a collector the queue stays bounded, and what is lost is counted', async () => {
  const { exporter, clock, counts, log, end } = exporterTo(NOWHERE);
  exporter.add(spans(MOST_QUEUED + 5));
  expect(counts).toEqual({ dropped: 5 });
  expect(exporter.room()).toBe(0);
  await vi.waitFor(async () => {
    await clock.advance(GIVE_UP_MS / 4);
    expect(counts['dropped']).toBe(5 + MOST_IN_REQUEST);
  }, PATIENCE);
  expect(log.join()).toContain('it cannot be reached (ECONNREFUSED)');
  await end();
  expect(counts['dropped']).toBe(5 + MOST_QUEUED);
});

test('at the end of a term what is left is sent', async () => {
  const { url } = await collector((_request, response) => response.end());
  const { exporter, counts, end } = exporterTo(url);
  exporter.add(spans(3));
  await end();
  expect(counts['sent']).toBe(3);
});

test('a collector that never answers does not hold up the end', async () => {
  const { server, url } = await collector(() => undefined);
  const { exporter, clock, counts, end } = exporterTo(url);
  exporter.add(spans(1));
  await vi.waitFor(() => expect(server.requests).toHaveLength(1), PATIENCE);
  const ended = end();
  await vi.waitFor(async () => {
    await clock.advance(1_000);
    expect(counts).toMatchObject({ dropped: 1 });
  }, PATIENCE);
  await ended;
});
