/** Owns the reference page of what Refit measures: made from the metrics that a process registers. */
import { prometheusMetrics } from '../../src/runtime/metrics-prometheus.ts';

/** Of each family its HELP and TYPE line; what the runtime itself measures is left out. */
export async function metricReference(): Promise<string> {
  const { body } = await prometheusMetrics().expose();
  const helps = [...body.matchAll(/^# HELP (refit_\S+) (.*)\n# TYPE \S+ (\S+)$/gm)];
  const rows = helps.map(([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`);
  return `${[
    '# Metrics',
    '',
    'Made from `src/runtime` by `npm run generate`: change it there. They are served at `/metrics` of `--health-address`. Gates and',
    'reasons are the words of [reasons](reasons.md), phases those of `refit status`, steps those of the node.',
    '',
    '| metric | type | meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n')}\n`;
}
