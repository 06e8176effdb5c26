/** Tests what the kubelet and Prometheus learn about a process, over a real socket. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHealthServer } from './health.ts';
import { createMetrics, noMetrics } from './metrics.ts';

async function serve(waiting: string[], metrics = noMetrics): Promise<string> {
  const server = await createHealthServer({
    address: '127.0.0.1:0',
    waitingFor: () => waiting,
    metrics,
  });
  const stop = new AbortController();
  const running = server.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return `http://127.0.0.1:${server.port}`;
}

test.each([
  ['/healthz', ['nodes'], 200, 'ok\n'],
  ['/readyz', ['nodes', 'plans'], 503, 'waiting for: nodes, plans\n'],
  ['/readyz', [], 200, 'ok\n'],
  ['/readyz?verbose', [], 200, 'ok\n'],
  ['/else', [], 404, 'not found\n'],
])('%s while waiting for %j', async (path, waiting, code, body) => {
  const response = await fetch(`${await serve(waiting)}${path}`);
  expect([response.status, await response.text()]).toEqual([code, body]);
});

test('what was measured is exposed', async () => {
  const metrics = createMetrics('1.2.3');
  metrics.reconciled('plans', 'success', 0.02);
  metrics.queueDepth('plans', 3);
  const request = { verb: 'get', method: 'GET', host: 'api:6443', resource: 'nodes', ms: 4 };
  metrics.requested({ ...request, code: 200 });
  metrics.requested({ ...request, code: 0 });
  metrics.reconciled('plans', 'error', 0.02);
  metrics.leading('lease', true);
  const response = await fetch(`${await serve([], metrics)}/metrics`);
  const text = await response.text();
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const line of [
    'refit_reconcile_duration_seconds_bucket{le="0.05",controller="plans",outcome="success"} 1',
    'workqueue_depth{name="plans"} 3',
    'workqueue_retries_total{name="plans"} 1',
    'rest_client_requests_total{code="200",method="GET",host="api:6443",resource="nodes"} 1',
    'rest_client_requests_total{code="<error>",method="GET",host="api:6443",resource="nodes"} 1',
    'refit_api_request_duration_seconds_sum{verb="get",resource="nodes"} 0.008',
    'leader_election_master_status{name="lease"} 1',
    'refit_build_info{version="1.2.3"} 1',
  ]) {
    expect(text).toContain(line);
  }
});

test('a scraper that asks for OpenMetrics gets it if traces are sent', async () => {
  const metrics = createMetrics();
  const url = `${await serve([], metrics)}/metrics`;
  const accept = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5';
  const typeFor = async (headers: Record<string, string>): Promise<string | null> =>
    (await fetch(url, { headers })).headers.get('content-type');
  const plain = 'text/plain; version=0.0.4; charset=utf-8';
  expect(await typeFor({ accept })).toBe(plain);
  metrics.offerExemplars();
  const open = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
  expect(await typeFor({ accept })).toBe(open);
  expect(await typeFor({})).toBe(plain);
});

test('metrics that cannot be made are an error, not an end', async () => {
  const broken = {
    ...noMetrics,
    expose: async () => await Promise.reject(new Error('no registry')),
  };
  const response = await fetch(`${await serve([], broken)}/metrics`);
  expect([response.status, await response.text()]).toEqual([500, 'no registry\n']);
});

test('an address that is none, or taken, is told', async () => {
  const options = { waitingFor: () => [], metrics: noMetrics };
  await expect(createHealthServer({ ...options, address: 'here' })).rejects.toThrow(
    '"here" is not an address',
  );
  await expect(createHealthServer({ ...options, address: 'localhost:65536' })).rejects.toThrow(
    '"localhost:65536" is not an address',
  );
  const taken = new URL(await serve([])).host;
  await expect(createHealthServer({ ...options, address: taken })).rejects.toThrow('EADDRINUSE');
});

test('a head without an end is cut off, and connections beyond the limit are closed', async () => {
  const { port } = new URL(await serve([]));
  const open = (): Socket =>
    connect(Number(port), '127.0.0.1')
      .on('error', () => undefined)
      .resume();
  const slow = open();
  slow.write('GET /healthz HTTP/1.1\r\nHost: x\r\n');
  await once(slow, 'close');
  const many = Array.from({ length: 80 }, open);
  await expect.poll(() => many.filter(({ closed }) => closed).length).toBe(16);
  for (const socket of many) socket.destroy();
});
