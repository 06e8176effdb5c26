/** Writes the reference page of the metrics, from those that a process registers. */
import { prometheusMetrics } from '../../src/runtime/metrics-prometheus.ts';

/** HELP and TYPE of each family, without the runtime's own metrics. */
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
