/** Tests who gets OpenMetrics, and how it differs from the Prometheus text. */
import { expect, test } from 'vitest';
import { createMetrics, type Metrics } from './metrics.ts';
import {
  createExemplars,
  type MetricFamily,
  openMetricsHead,
  openMetricsSamples,
  wantsOpenMetrics,
} from './openmetrics.ts';

const OPEN = 'application/openmetrics-text';
const SPAN = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' };

test.each([
  [`${OPEN}; version=1.0.0`, true],
  [`${OPEN}; version=1.0.0; charset=utf-8`, true],
  [OPEN, true],
  [`${OPEN.toUpperCase()};VERSION="1.0.0";Q=0.5`, true],
  // These are the headers of Prometheus 2.42 and 3.5.
  [
    `${OPEN};version=1.0.0,${OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
    true,
  ],
  [
    `${OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,${OPEN};version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2`,
    true,
  ],
  [`${OPEN};version=1.0.0, text/plain`, true],
  [`${OPEN};version=1.0.0;q=0.4, text/plain;version=0.0.4;q=0.5`, false],
  [`${OPEN};version=1.0.0;q=0.4, */*`, false],
  [`${OPEN};version=1.0.0;q=0.4, */*, text/plain;q=0.3`, true],
  [`${OPEN};version=1.0.0;q=0.4, text/*;q=0.5, */*;q=0.1`, false],
  [`${OPEN};version=1.0.0;q=0`, false],
  [`${OPEN};version=1.0.0;q=0.000, ${OPEN}`, false],
  [`${OPEN};version=1.0.0;q=2`, false],
  [`${OPEN};version=1.0.0;q=-1`, false],
  [`${OPEN};version=1.0.0;q=high`, false],
  [`${OPEN};version=1.0.0;q=`, false],
  [`${OPEN};version=1.0.0;q=0.5001`, false],
  [`${OPEN};version=0.0.1`, false],
  [`${OPEN};version=2.0.0`, false],
  [`${OPEN};version=`, false],
  [`${OPEN}-new;version=1.0.0`, false],
  ['*/*', false],
  ['application/*', false],
  ['text/plain;version=0.0.4', false],
  ['', false],
  [',;,=;;q', false],
  [`text/plain;note="a,${OPEN};version=1.0.0,b"`, false],
  [`${OPEN};version="1.0.0`, false],
])('Accept %s', (accept, expected) => {
  expect(wantsOpenMetrics(accept)).toBe(expected);
});

function family(more: Partial<MetricFamily>): MetricFamily {
  return { name: 'a', help: 'help', type: 'gauge', values: [], ...more };
}

test.each<[string, Partial<MetricFamily>, string[], string]>([
  ['a counter', { name: 'a_total', type: 'counter' }, [], '# HELP a help\n# TYPE a counter\n'],
  ['one without the end', { type: 'counter' }, [], '# HELP a help\n# TYPE a unknown\n'],
  [
    'one whose short name is taken',
    { name: 'a_total', type: 'counter' },
    ['a'],
    '# HELP a_total help\n# TYPE a_total unknown\n',
  ],
  ['a gauge', { name: 'a_total' }, [], '# HELP a_total help\n# TYPE a_total gauge\n'],
  ['a gauge with facts', { name: 'a_info' }, [], '# HELP a_info help\n# TYPE a_info gauge\n'],
  ['a histogram', { type: 'histogram' }, [], '# HELP a help\n# TYPE a histogram\n'],
  ['a summary', { type: 'summary' }, [], '# HELP a help\n# TYPE a summary\n'],
  ['a help', { help: 'a "b"\\\nc' }, [], '# HELP a a \\"b\\"\\\\\\nc\n# TYPE a gauge\n'],
])('the head of %s', (_name, more, others, expected) => {
  const each = family(more);
  expect(openMetricsHead(each, new Set([each.name, ...others]))).toBe(expected);
});

test.each<[string, Partial<MetricFamily>, string]>([
  ['no labels', { values: [{ labels: {}, value: 0.5 }] }, 'a 0.5\n'],
  [
    'special characters',
    { values: [{ labels: { text: '"\\\n,}' }, value: 1 }] },
    'a{text="\\"\\\\\\n,}"} 1\n',
  ],
  [
    'special numbers',
    {
      values: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 1e21].map(
        (value) => ({ labels: {}, value }),
      ),
    },
    'a +Inf\na -Inf\na NaN\na 1e+21\n',
  ],
])('the samples with %s', (_name, more, expected) => {
  expect(openMetricsSamples(family(more), createExemplars())).toBe(expected);
});

const EXEMPLAR = { labelSet: { trace_id: '1' }, value: 7, timestamp: 1_764_000_000.5 };
const SHOWN = ' # {trace_id="1"} 7 1764000000.5';

test.each([
  ['a bucket', 'histogram', 'a_bucket', EXEMPLAR, SHOWN],
  ['a counter', 'counter', 'a_total', EXEMPLAR, SHOWN],
  ['no time', 'counter', 'a_total', { labelSet: {}, value: 7 }, ' # {} 7'],
  ['a sum', 'histogram', 'a_sum', EXEMPLAR, ''],
  ['a gauge', 'gauge', 'a_total', EXEMPLAR, ''],
  [
    '128 characters',
    'counter',
    'a_total',
    { labelSet: { a: '😀'.repeat(127) }, value: 7 },
    ` # {a="${'😀'.repeat(127)}"} 7`,
  ],
  ['129 characters', 'counter', 'a_total', { labelSet: { a: 'x'.repeat(128) }, value: 7 }, ''],
])('an exemplar of %s', (_name, type, metricName, exemplar, expected) => {
  const exemplars = createExemplars();
  exemplars.keep(metricName, { b: 1, a: 2 }, exemplar);
  const values = [
    { metricName, labels: { a: 2, b: 1 }, value: 1 },
    { metricName, labels: { a: 3, b: 1 }, value: 1 },
  ];
  expect(openMetricsSamples(family({ type, values }), exemplars)).toBe(
    `${metricName}{a="2",b="1"} 1${expected}\n${metricName}{a="3",b="1"} 1\n`,
  );
});

/** Metrics of every type, of the process and of a workload cluster. */
function measured(): Metrics {
  const metrics = createMetrics('1.2.3');
  metrics.stepDone('autopilot', 'Restart', 7, SPAN);
  metrics.stepDone('autopilot', 'Restart', 86_400, SPAN);
  metrics.ofCluster('default/blue').stepDone('capi', 'Restart', 7, SPAN);
  const request = { verb: 'get', method: 'GET', host: 'api:6443', resource: 'nodes', ms: 4 };
  metrics.requested({ ...request, code: 0 });
  metrics.update('a', 'UpToDate', 'v1', 'v1');
  return metrics;
}

/**
 * Returns the series with sorted labels, because the order of labels has no meaning. Leaves out the series about the
 * current activity of Node.js.
 */
function seriesIn(body: string): string[] {
  return body
    .split('\n')
    .filter((line) => line !== '' && !/^(?:#|nodejs_active_)/.test(line))
    .map((line) => line.replace(/ # .*/, '').replace(/ \S+$/, ''))
    .map((series) =>
      series.replace(/\{.*\}/, (all) => all.slice(1, -1).split(',').toSorted().join()),
    );
}

test('without traces, every scraper gets the Prometheus text', async () => {
  const metrics = measured();
  const { body, contentType } = await metrics.expose(OPEN);
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(body).not.toMatch(/ # |# EOF/);
});

test('both formats have the same series', async () => {
  const metrics = measured();
  metrics.offerExemplars();
  const plain = await metrics.expose();
  const open = await metrics.expose(OPEN);
  expect(plain.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(plain.body).not.toMatch(/ # |# EOF/);
  expect(open.contentType).toBe(`${OPEN}; version=1.0.0; charset=utf-8`);
  expect(open.body).toMatch(/[^\n]\n# EOF\n$/);
  expect(open.body).not.toMatch(/\n\n|_total_total/);
  const series = seriesIn(open.body);
  expect(series.length).toBeGreaterThan(50);
  // If garbage is collected between the two answers, this adds series to the second answer.
  const isLasting = (line: string): boolean => !line.startsWith('nodejs_gc_duration_seconds');
  const ofPlain = seriesIn(plain.body).filter(isLasting);
  expect(series.filter(isLasting).toSorted()).toEqual(ofPlain.toSorted());
});

test('a bucket has the span of the last step that it counts, and the other buckets have none', async () => {
  const metrics = measured();
  metrics.offerExemplars();
  const other = { ...SPAN, spanId: '00f067aa0ba902b7' };
  metrics.stepDone('autopilot', 'Restart', 8, other);
  metrics.stepDone('autopilot', 'Restart', 9);
  const { body } = await metrics.expose(OPEN);
  const found = body.split('\n').filter((line) => line.includes(' # {'));
  const shown = ({ traceId, spanId }: typeof SPAN): string =>
    `# {trace_id="${traceId}",span_id="${spanId}"}`;
  const name = 'refit_step_duration_seconds_bucket';
  expect(found.map((line) => line.replace(/ \d+\.?\d{0,3}$/, ''))).toEqual([
    `${name}{le="10",dialect="autopilot",step="Restart"} 3 ${shown(other)} 8`,
    `${name}{le="+Inf",dialect="autopilot",step="Restart"} 4 ${shown(SPAN)} 86400`,
    `${name}{le="10",dialect="capi",step="Restart",workload_cluster="default/blue"} 1 ${shown(SPAN)} 7`,
  ]);
  const now = Date.now() / 1000;
  for (const line of found)
    expect(Math.abs(now - Number(line.split(' ').at(-1)))).toBeLessThan(600);
});
