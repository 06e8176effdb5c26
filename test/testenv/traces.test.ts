/**
 * Tests the trace of a rollout on a real API server: there is exactly one trace, also after a leader was killed, and no
 * node waits for a collector.
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { installKinds, kubeconfigFor, kubectlAs } from './control-plane.ts';
import { Puppets } from './puppets.ts';
import { complete, type Seen, spansIn } from './received-spans.ts';
import { RefitProcess } from './refit-process.ts';

const SECRET = 'T0K3N-0F-THESE-TESTS';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});
afterAll(() => admin.close());
afterEach(() => void vi.unstubAllEnvs());

/** Starts a leader that sends traces to this port. */
async function lead(port: number): Promise<RefitProcess> {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${port}`);
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', `authorization=Bearer%20${SECRET}`);
  const path = await kubeconfigFor('controller');
  return new RefitProcess('controller', '--kubeconfig', path, '--lease-duration', '5s');
}

/** Returns the spans by id. */
function byId(spans: readonly Seen[]): Map<string, Seen> {
  return new Map(spans.map((span) => [span.spanId, span]));
}

function nodeOf({ attributes }: Seen): object | undefined {
  return attributes.find(({ key }) => key === 'k8s.node.name')?.value;
}

async function shown(...args: readonly string[]): Promise<string> {
  const { ok, stdout } = await kubectlAs('admin', ['get', ...args]);
  expect(ok).toBe(true);
  return stdout;
}

test('a killed leader and its successor send the same spans of one trace', async () => {
  await using server = await startStubServer((_request, response) => void response.end('{}'));
  await using puppets = await Puppets.create(admin, 'traced-1', 'traced-2');
  await using killed = await lead(server.port);
  const seen = (): Seen[] => spansIn(server.requests);
  await puppets.plan(1);
  await complete(puppets, 'traced-1');
  await puppets.until(() => expect(byId(seen()).size).toBe(3));
  await killed.stop('SIGKILL');
  const before = seen();

  await using leader = await lead(server.port);
  await complete(puppets, 'traced-2');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(() => expect(seen().map(({ name }) => name)).toContain('rollout'));
  const spans = byId(seen());
  expect([...spans.values()].map(({ name }) => name).toSorted()).toEqual([
    'Downloading',
    'Downloading',
    'Restart',
    'Restart',
    'rollout',
    'upgrade node',
    'upgrade node',
  ]);
  const again = seen().slice(before.length);
  for (const span of before)
    expect(again.find(({ spanId }) => spanId === span.spanId)).toEqual(span);
  const [traceId, ...others] = new Set(seen().map((span) => span.traceId));
  expect(others).toEqual([]);
  const root = seen().find(({ name }) => name === 'rollout');
  const nodes = [...spans.values()].filter(({ name }) => name === 'upgrade node');
  expect(nodes.map(nodeOf)).toEqual([{ stringValue: 'traced-1' }, { stringValue: 'traced-2' }]);
  for (const { parentSpanId } of nodes) expect(parentSpanId).toBe(root?.spanId);
  for (const { startTimeUnixNano, endTimeUnixNano } of spans.values()) {
    expect(startTimeUnixNano).toMatch(/^\d{19}$/);
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
  for (const { method, url, headers } of server.requests)
    expect([method, url, headers.authorization]).toEqual([
      'POST',
      '/v1/traces',
      `Bearer ${SECRET}`,
    ]);

  const path = '-o=jsonpath={.items[*].status.history[0].traceId}';
  await puppets.until(async () =>
    expect(await shown('noderollouts', '-A', path)).toContain(traceId),
  );
  const events = await shown('events', '-A', '-o', 'json');
  expect(events).toContain(`all 2 targets are done; trace ${traceId}`);
  expect(await leader.stop('SIGTERM')).toBe(0);
  const logs = [killed, leader].flatMap(({ stdout, stderr }) => [...stdout, ...stderr]).join();
  for (const text of [logs, events]) expect(text).not.toContain(SECRET);
});

test('no node waits for a collector that never answers, and the leader ends in time', async () => {
  await using server = await startStubServer(() => undefined);
  await using puppets = await Puppets.create(admin, 'traced-3');
  await using leader = await lead(server.port);
  await puppets.plan(1);
  await complete(puppets, 'traced-3');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });
  await puppets.until(() => expect(server.requests).not.toEqual([]));
  expect(await leader.stop('SIGTERM')).toBe(0);
});
