/** Writes docs/reference/metrics.md from the metrics that a process registers. */
import { createMetrics } from '../../src/runtime/metrics.ts';

/** Returns the page. It has no metrics of Node.js itself, because `createMetrics` gets no version. */
export async function metricReference(): Promise<string> {
  const { body } = await createMetrics().expose();
  const helps = [...body.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm)];
  const rows = helps.map(([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`);
  return `${[
    '# Metrics',
    '',
    '`npm run generate` writes this page from `src/runtime/metrics.ts`. A process serves its metrics at `/metrics` of `--health-address`.',
    'Metrics whose names do not begin with `refit_` have the names and meanings of client-go, so that existing dashboards work.',
    '',
    'Some labels have values that other pages explain. The values of `reason` are [reasons](reasons.md). The values of `gate` are names of files in `src/engine/gates/`. The values of `phase` are the phases in the output of `refit status`.',
    '',
    'Each process also serves the metrics of its Node.js process.',
    '',
    '| metric | type | meaning |',
    '|---|---|---|',
    ...rows,
    '',
    'The answer is the Prometheus text. If Refit sends [traces](../guides/traces.md#from-a-metric-to-its-trace) and the header `Accept` of the scraper names',
    '`application/openmetrics-text` with version 1.0.0 or without a version, the answer is OpenMetrics 1.0. Series have the same names and labels in both formats. The label',
    '`le` also has the same values in both. In OpenMetrics, the buckets of `refit_step_duration_seconds` have exemplars with `trace_id` and `span_id`.',
  ].join('\n')}\n`;
}
