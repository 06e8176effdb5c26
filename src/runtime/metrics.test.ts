/** Proves that plans are exposed as they are now, and not once they are gone. */
import { expect, test } from 'vitest';
import { createMetrics, type Metrics } from './metrics.ts';

const PLAN = { dialect: 'autopilot', plan: 'autopilot' };

async function linesOf(metrics: Metrics): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split('\n').filter((line) => /^refit_(plans|targets|waits)\{/.test(line));
}

test('a plan is exposed as it stands, with what holds it back', async () => {
  const metrics = createMetrics();
  const waits = [{ gate: 'node-ready', reason: 'NodeNotReady' }];
  metrics.plan({
    ...PLAN,
    phases: { running: 1, done: 0 },
    targets: { pending: 2, done: 1, failed: 0 },
    waits: [...waits, ...waits],
  });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="running"} 1',
    'refit_plans{dialect="autopilot",plan="autopilot",phase="done"} 0',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="pending"} 2',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="failed"} 0',
    'refit_waits{dialect="autopilot",plan="autopilot",gate="node-ready",reason="NodeNotReady"} 2',
  ]);
  metrics.plan({ ...PLAN, phases: { done: 1 }, targets: { done: 3 }, waits: [] });
  expect(await linesOf(metrics)).toEqual([
    'refit_plans{dialect="autopilot",plan="autopilot",phase="done"} 1',
    'refit_targets{dialect="autopilot",plan="autopilot",phase="done"} 3',
  ]);
  metrics.forgetPlan('autopilot', 'autopilot');
  expect(await linesOf(metrics)).toEqual([]);
});

test('steps are measured in seconds', async () => {
  const metrics = createMetrics();
  metrics.stepDone('autopilot', 'Restart', 7);
  const { body } = await metrics.expose();
  expect(body).toContain('refit_step_duration_seconds_bucket{le="10",dialect="autopilot",step="Restart"} 1');
  expect(body).toContain('refit_step_duration_seconds_bucket{le="5",dialect="autopilot",step="Restart"} 0');
});
