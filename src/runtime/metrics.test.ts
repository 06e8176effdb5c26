/** Tests that the metrics of current plans are exposed, and that the metrics of deleted plans are not exposed. */
import { expect, test } from 'vitest';
import { createMetrics, type Metrics } from './metrics.ts';

const PLAN = { dialect: 'autopilot', plan: 'autopilot' };

async function linesOf(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.expose();
  return body
    .split('\n')
    .filter((line) =>
      /^refit_(plans|plan_percent|plan_eta_seconds|targets|waits|health_check)\{/.test(line),
    );
}

async function phasesOf(metrics: Metrics): Promise<string[]> {
  return (await linesOf(metrics)).filter((line) => line.startsWith('refit_plans'));
}

test('the metrics of a plan show its state and the gates that hold it back', async () => {
  const metrics = createMetrics();
  const waits = [{ gate: 'node-ready', reason: 'NodeNotReady' }];
  metrics.plan({
    ...PLAN,
    phases: { running: 1, done: 0 },
    targets: { pending: 2, done: 1, failed: 0 },
    waits: [...waits, ...waits],
    checks: [{ check: 'error-rate', state: 'failing' }],
    percent: 33,
    etaSeconds: 90,
  });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="running"} 1',
    'refit_plans{dialect="autopilot",plan="autopilot",phase="done"} 0',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="pending"} 2',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="failed"} 0',
    'refit_waits{dialect="autopilot",plan="autopilot",gate="node-ready",reason="NodeNotReady"} 2',
    'refit_health_check{dialect="autopilot",plan="autopilot",check="error-rate",state="passing"} 0',
    'refit_health_check{dialect="autopilot",plan="autopilot",check="error-rate",state="failing"} 1',
    'refit_health_check{dialect="autopilot",plan="autopilot",check="error-rate",state="unknown"} 0',
    'refit_plan_percent{dialect="autopilot",plan="autopilot"} 33',
    'refit_plan_eta_seconds{dialect="autopilot",plan="autopilot"} 90',
  ]);
  metrics.plan({ ...PLAN, phases: { done: 1 }, targets: { done: 3 }, waits: [], percent: 100 });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 3',
    'refit_plan_percent{dialect="autopilot",plan="autopilot"} 100',
  ]);
  metrics.forgetPlan('autopilot', 'autopilot');
  expect(await linesOf(metrics)).toEqual([]);
});

test('measures of workload clusters stand beside those of the process, until the cluster is forgotten', async () => {
  const metrics = createMetrics('1.2.3');
  const alone = (await metrics.expose()).body.match(/^# .*/gm);
  for (const [cluster, done] of [
    ['default/blue', 1],
    ['default/green', 2],
  ] as const)
    metrics
      .ofCluster(cluster)
      .plan({ ...PLAN, phases: { done }, targets: {}, waits: [], percent: 0 });
  metrics.plan({ ...PLAN, phases: { done: 3 }, targets: {}, waits: [], percent: 0 });
  const labels = 'dialect="autopilot",plan="autopilot",phase="done"';
  const green = `refit_plans{${labels},workload_cluster="default/green"} 2`;
  const both = [
    `refit_plans{${labels}} 3`,
    `refit_plans{${labels},workload_cluster="default/blue"} 1`,
    green,
  ];
  expect(await phasesOf(metrics)).toEqual(both);
  // The format requires that each metric appears once.
  const headers = (await metrics.expose()).body.match(/^# .*/gm) ?? [];
  expect(new Set(headers).size).toBe(headers.length);
  expect(headers).toEqual(alone);
  metrics.forgetCluster('default/blue');
  expect(await phasesOf(metrics)).toEqual([both[0], green]);
});

test('with many clusters other work goes on during a scrape, and a second scrape adds none', async () => {
  const metrics = createMetrics('1.2.3');
  for (let index = 0; index < 20; index++)
    metrics.ofCluster(`default/c${index}`).stepDone('capi', 'Restart', 7);
  const scrapes = [metrics.expose(), metrics.expose()];
  let others = 0;
  setImmediate(() => others++);
  const [first, second] = await Promise.all(scrapes);
  expect(others).toBe(1);
  expect(first?.body.match(/^process_start_time_seconds \d/gm)).toHaveLength(1);
  expect(first?.body.match(/^refit_step_duration_seconds_count\{/gm)).toHaveLength(20);
  expect(second?.body).toBe(first?.body);
  metrics.forgetCluster('default/c0');
  expect(
    (await metrics.expose()).body.match(/^refit_step_duration_seconds_count\{/gm),
  ).toHaveLength(19);
});

test('steps are measured in seconds', async () => {
  const metrics = createMetrics();
  metrics.stepDone('autopilot', 'Restart', 7);
  const { body } = await metrics.expose();
  expect(body).toContain(
    'refit_step_duration_seconds_bucket{le="10",dialect="autopilot",step="Restart"} 1',
  );
  expect(body).toContain(
    'refit_step_duration_seconds_bucket{le="5",dialect="autopilot",step="Restart"} 0',
  );
});
