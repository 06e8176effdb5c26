/**
 * Tests alerts and dashboard: their metrics and labels exist, and promtool confirms that each alert fires when it
 * should.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { BEFORE_TARGET } from '../../src/engine/gates/registry.ts';
import type { RolloutPhase } from '../../src/engine/model/rollout.ts';
import type { TargetPhase } from '../../src/engine/model/shown-phases.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { cacheDirectory } from '../controlplane/build.ts';
import { run } from '../controlplane/run.ts';
import { ALERTS, dashboard } from './monitoring.ts';
import { yamlOf } from './objects.ts';

/** The labels that Prometheus adds to every series, and the label of the buckets of a histogram. */
const ADDED = ['instance', 'job', 'le', 'pod'];
const FUNCTIONS = new Set(
  'sum max by on unless and offset h absent rate increase changes histogram_quantile'.split(' '),
);

interface Panel {
  readonly gridPos: { readonly x: number; readonly y: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const { panels } = JSON.parse(dashboard()) as { panels: readonly Panel[] };
const expressions = [...ALERTS, ...panels.flatMap(({ targets }) => targets)].map(
  ({ expr }) => expr,
);

/** Returns the labels of each series, from a process that has measured everything once. */
async function seriesOf(): Promise<Map<string, Set<string>>> {
  const all = createMetrics('1.0.0');
  const metrics = all.ofCluster('default/prod');
  metrics.leading('lease', true);
  metrics.queueDepth('controller', 1);
  metrics.reconciled('controller', 'error', 1);
  metrics.requested({
    verb: 'list',
    method: 'GET',
    host: 'api',
    resource: 'nodes',
    code: 200,
    ms: 1,
  });
  metrics.plan({
    dialect: 'd',
    plan: 'p',
    phases: { done: 1 },
    targets: { done: 1 },
    waits: [{ gate: 'g', reason: 'R' }],
    percent: 100,
    etaSeconds: 1,
  });
  metrics.stepDone('d', 'Restart', 1);
  const { body } = await all.expose();
  const series = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of body.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = series.get(name) ?? new Set(ADDED);
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    series.set(name, known);
  }
  return series;
}

/** Returns the names in the expression that no process exports. */
function unknownIn(expression: string, series: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const bare = expression.replaceAll(/"[^"]*"/g, '""');
  const groups = [...bare.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(/,\s*/),
  );
  const rest = bare.replaceAll(/\b(by|on) \([^)]*\)/g, '').replaceAll(/\[[^\]]*\]/g, '');
  const named = [...rest.matchAll(/([a-z_][a-z_0-9]*)(?:\{([^}]*)\})?/g)]
    .map(([, name = '', labels = '']) => ({
      name,
      labels: [...labels.matchAll(/(\w+)=/g)].map(([, label = '']) => label),
    }))
    .filter(({ name }) => !FUNCTIONS.has(name));
  const all = named.flatMap(({ name }) => [...(series.get(name) ?? [])]);
  return [
    ...named.filter(({ name }) => !series.has(name)).map(({ name }) => name),
    ...named.flatMap(({ name, labels }) => labels.filter((label) => !series.get(name)?.has(label))),
    ...groups.filter((label) => !all.includes(label)),
  ];
}

const series = await seriesOf();

test.each(expressions)('%s: its metrics and labels exist', (expression) => {
  expect(unknownIn(expression, series)).toEqual([]);
});

test('a metric, a label and a group that do not exist: found', () => {
  expect(unknownIn('refit_plan{phase="a"} == 1', series)).toEqual(['refit_plan', 'phase']);
  expect(unknownIn('sum by (nodes) (refit_plans{state="a"})', series)).toEqual(['state', 'nodes']);
});

const PHASES: Readonly<Record<TargetPhase | RolloutPhase, true>> = {
  pending: true,
  intended: true,
  signalled: true,
  working: true,
  verifying: true,
  done: true,
  failed: true,
  missing: true,
  unsupported: true,
  skipped: true,
  new: true,
  running: true,
  incomplete: true,
  invalid: true,
};

test('phases and gates that expressions name exist', () => {
  const gates = BEFORE_TARGET.map(({ name }) => name);
  const valuesOf = (label: string): string[] =>
    expressions.flatMap((text) =>
      [...text.matchAll(new RegExp(`\\b${label}=~?"([^"$]*)"`, 'g'))].flatMap(([, list = '']) =>
        list.split('|'),
      ),
    );
  expect(valuesOf('gate').filter((name) => !gates.includes(name))).toEqual([]);
  expect(valuesOf('gate')).not.toEqual([]);
  expect(valuesOf('phase').filter((name) => !(name in PHASES))).toEqual([]);
});

test('every panel has its place, and a legend with labels that its query has', () => {
  const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(panels.length);
  const labels = [...series.values()].flatMap((each) => [...each]);
  const legends = panels.flatMap(({ targets }) =>
    targets.flatMap(({ legendFormat }) => legendFormat.match(/(?<=\{\{)\w+/g) ?? []),
  );
  expect(legends.filter((label) => !labels.includes(label))).toEqual([]);
});

/** The program from Debian's package `prometheus`, which .ci/run unpacks. */
const PROMTOOL = join(cacheDirectory(process.env), '..', 'prometheus/usr/bin/promtool');

test('each alert fires when it should, and only then', async (context) => {
  context.skip(
    !existsSync(PROMTOOL),
    `no ${PROMTOOL}: .ci/run unpacks Debian's package prometheus there`,
  );
  const directory = await mkdtemp(join(tmpdir(), 'refit-alerts-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  const write = async (name: string, rules: readonly object[]): Promise<void> =>
    await writeFile(join(directory, name), yamlOf({ groups: [{ name: 'refit', rules }] }));
  await write('whole.yaml', ALERTS);
  // promtool would also compare the annotations for each case, so this file has none.
  await write(
    'rules.yaml',
    ALERTS.map(({ annotations: _annotations, ...rule }) => rule),
  );
  const checked = await run(PROMTOOL, ['check', 'rules', 'whole.yaml'], { cwd: directory });
  expect(checked).toMatchObject({
    ok: true,
    stdout: expect.stringContaining(`${ALERTS.length} rules found`) as string,
  });
  const source = join(import.meta.dirname, 'alerts.promtool.yaml');
  const tests = parse(await readFile(source, 'utf8')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }[];
  };
  const fired = tests.tests.flatMap((each) =>
    each.alert_rule_test.filter(({ exp_alerts: all }) => all.length > 0),
  );
  expect(new Set(fired.map(({ alertname }) => alertname))).toEqual(
    new Set(ALERTS.map((each) => each.alert)),
  );
  await copyFile(source, join(directory, 'tests.yaml'));
  const { ok, stdout, stderr } = await run(PROMTOOL, ['test', 'rules', 'tests.yaml'], {
    cwd: directory,
  });
  expect({ ok, said: `${stdout}${stderr}` }).toEqual({
    ok: true,
    said: expect.stringContaining('SUCCESS') as string,
  });
});
