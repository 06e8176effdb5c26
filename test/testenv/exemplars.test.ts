/** Tests with a real Prometheus that the exemplars of a real controller refer to spans that a collector received. */
import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { freePort } from '../../tools/controlplane/ports.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { installKinds, kubeconfigFor } from './control-plane.ts';
import { MISSING_PROMETHEUS, PROMTOOL, startScraper } from './prometheus.ts';
import { Puppets } from './puppets.ts';
import { complete, spansIn } from './received-spans.ts';
import { RefitProcess } from './refit-process.ts';

const BUCKETS = 'refit_step_duration_seconds_bucket';

let admin: KubeClient;

beforeAll(async () => {
  await installKinds();
  admin = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
});
afterAll(() => admin.close());
afterEach(() => void vi.unstubAllEnvs());

interface Found {
  readonly seriesLabels: Readonly<Record<string, string>>;
  readonly exemplars: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: string;
  }[];
}

/** Asks Prometheus, and returns the data of its answer. */
async function asked<T>(url: string, path: string, query: Record<string, string>): Promise<T> {
  const around = 3_600_000;
  const start = new Date(Date.now() - around).toISOString();
  const end = new Date(Date.now() + around).toISOString();
  const parameters = new URLSearchParams({ ...query, start, end });
  const response = await fetch(`${url}/api/v1/${path}?${parameters.toString()}`);
  const { data } = (await response.json()) as { data: T };
  return data;
}

/** Returns step, trace and span of each exemplar. */
async function exemplarsIn(url: string) {
  const found = await asked<Found[]>(url, 'query_exemplars', { query: BUCKETS });
  return found
    .flatMap(({ seriesLabels, exemplars }) =>
      exemplars.map(({ labels, value }) => ({ step: seriesLabels['step'], value, ...labels })),
    )
    .toSorted((one, other) => Number(one.value) - Number(other.value));
}

/**
 * Returns three lists from a metrics text: the names of all series, the names that the text declares, and the values of
 * `le` in the series of the steps.
 */
function namesIn(text: string) {
  const series = text.split('\n').filter((line) => /^\w/.test(line));
  const ofSteps = series.filter((line) => line.startsWith(BUCKETS));
  const declared = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
  );
  return {
    declared,
    names: [...new Set(series.map((line) => /^\w+/.exec(line)?.[0] ?? ''))],
    bounds: [...new Set(ofSteps.map((line) => /le="([^"]+)"/.exec(line)?.[1] ?? ''))].toSorted(),
  };
}

/** Expects that Prometheus, which scraped OpenMetrics, has the series that another scraper finds in the Prometheus text. */
async function expectSameSeries(prometheus: string, controller: string): Promise<void> {
  const plain = await (await fetch(`http://${controller}/metrics`)).text();
  const { stderr } = spawnSync(PROMTOOL, ['check', 'metrics'], { input: plain, encoding: 'utf8' });
  expect(stderr).not.toContain('error');
  const { declared, names, bounds } = namesIn(plain);
  const all = { 'match[]': '{job="refit"}' };
  const kept = await asked<string[]>(prometheus, 'label/__name__/values', all);
  const ours = kept.filter((name) => !/^(?:up$|scrape_)/.test(name));
  // A series of a gauge may disappear, and Prometheus also has the series of earlier scrapes. So the names in
  // Prometheus are compared with all names that the text declares.
  expect(declared).toEqual(expect.arrayContaining(ours));
  expect(ours).toEqual(expect.arrayContaining(names));
  expect(bounds).toContain('10');
  const found = await asked<string[]>(prometheus, 'label/le/values', { 'match[]': BUCKETS });
  expect(found.toSorted()).toEqual(bounds);
}

test('an exemplar of a step leads to its span', async (context) => {
  context.skip(MISSING_PROMETHEUS !== undefined, MISSING_PROMETHEUS);
  await using collector = await startStubServer((_request, response) => void response.end('{}'));
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${collector.port}`);
  await using puppets = await Puppets.create(admin, 'exemplary-1');
  const address = `127.0.0.1:${await freePort()}`;
  const options = ['--kubeconfig', await kubeconfigFor('controller'), '--health-address', address];
  await using leader = new RefitProcess('controller', ...options, '--lease-duration', '5s');
  await using scraper = await startScraper(address);
  await puppets.plan(1);
  await complete(puppets, 'exemplary-1');
  expect(await puppets.end()).toMatchObject({ state: 'Completed' });

  await puppets.until(async () => expect(await exemplarsIn(scraper.url)).toHaveLength(2));
  const steps = ['Downloading', 'Restart'];
  await puppets.until(() =>
    expect(spansIn(collector.requests).map(({ name }) => name)).toEqual(
      expect.arrayContaining(steps),
    ),
  );
  const spans = spansIn(collector.requests);
  const expected = steps.map((step) => {
    const span = spans.find(({ name }) => name === step);
    return { step, trace_id: span?.traceId, span_id: span?.spanId };
  });
  expect(await exemplarsIn(scraper.url)).toMatchObject(expected);

  await puppets.until(async () => await expectSameSeries(scraper.url, address));
  expect(await leader.stop('SIGTERM')).toBe(0);
});
