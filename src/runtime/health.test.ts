/** Shows what the cluster hears from a process about its health, over a real socket. */
import { expect, onTestFinished, test } from 'vitest';
import { createHealthServer } from './health.ts';
import { noMetrics } from './metrics.ts';
import { prometheusMetrics } from './metrics-prometheus.ts';

async function serve(waiting: string[], metrics = noMetrics): Promise<string> {
  const server = createHealthServer({ address: '127.0.0.1:0', waitingFor: () => waiting, metrics });
  const stop = new AbortController();
  const running = server.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return `http://127.0.0.1:${(await server.listening).port}`;
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
  const metrics = prometheusMetrics();
  metrics.reconciled('plans', 'success', 0.02);
  metrics.queueDepth('plans', 3);
  metrics.requested({ verb: 'get', resource: 'nodes', code: 200, ms: 4 });
  metrics.leading(true);
  const response = await fetch(`${await serve([], metrics)}/metrics`);
  const text = await response.text();
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const line of [
    'refit_reconcile_duration_seconds_bucket{le="0.05",controller="plans",outcome="success"} 1',
    'refit_queue_depth{controller="plans"} 3',
    'refit_api_requests_total{verb="get",resource="nodes",code="200"} 1',
    'refit_api_request_duration_seconds_sum{verb="get",resource="nodes"} 0.004',
    'refit_leading 1',
  ]) {
    expect(text).toContain(line);
  }
});

test('metrics that cannot be made are an error, not an end', async () => {
  const broken = { ...noMetrics, expose: async () => await Promise.reject(new Error('no registry')) };
  const response = await fetch(`${await serve([], broken)}/metrics`);
  expect([response.status, await response.text()]).toEqual([500, 'no registry\n']);
});

test('an address that is none, or taken, is told', async () => {
  const options = { waitingFor: () => [], metrics: noMetrics };
  const abort = new AbortController().signal;
  await expect(createHealthServer({ ...options, address: 'here' }).run(abort)).rejects.toThrow('"here" is no address');
  const taken = new URL(await serve([])).host;
  await expect(createHealthServer({ ...options, address: taken }).run(abort)).rejects.toThrow('EADDRINUSE');
});
