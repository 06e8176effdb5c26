/** Owns the proof of what is exposed of plans: the present only, and nothing of a plan that is gone. */
import { expect, test } from 'vitest';
import { prometheusMetrics } from './metrics-prometheus.ts';

const PLAN = { dialect: 'autopilot', plan: 'autopilot' };

async function linesOf(metrics: ReturnType<typeof prometheusMetrics>): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split('\n').filter((line) => /^refit_(plans|targets|waits)\{/.test(line));
}

test('a plan is exposed as it stands, with what holds it back', async () => {
  const metrics = prometheusMetrics();
  const waits = [{ gate: 'node-ready', reason: 'NodeNotReady' }];
  metrics.plan({
    ...PLAN,
    phase: 'running',
    targets: new Map([
      ['pending', 2],
      ['done', 1],
    ]),
    waits: [...waits, ...waits],
  });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="running"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="pending"} 2',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_waits{dialect="autopilot",plan="autopilot",gate="node-ready",reason="NodeNotReady"} 2',
  ]);
  metrics.plan({ ...PLAN, phase: 'done', targets: new Map([['done', 3]]), waits: [] });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 3',
  ]);
  metrics.forgetPlan('autopilot', 'autopilot');
  expect(await linesOf(metrics)).toEqual([]);
});

test('steps are measured in seconds', async () => {
  const metrics = prometheusMetrics();
  metrics.stepDone('autopilot', 'Restart', 7);
  const { body } = await metrics.expose();
  expect(body).toContain('refit_step_duration_seconds_bucket{le="10",dialect="autopilot",step="Restart"} 1');
  expect(body).toContain('refit_step_duration_seconds_bucket{le="5",dialect="autopilot",step="Restart"} 0');
});
