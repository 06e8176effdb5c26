/** Owns what is measured of plans: where they stand, where their targets are, what they wait for, and how long steps take. */
import { Gauge, Histogram, type Registry } from 'prom-client';
import type { Metrics, PlanMeasure } from './metrics.ts';

/** Seconds; from a cordon to a download over a slow link. */
const STEP_BUCKETS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21_600];

type PlanMetrics = Pick<Metrics, 'plan' | 'forgetPlan' | 'stepDone'>;

export function planMetrics(registers: Registry[]): PlanMetrics {
  const gauge = (name: string, help: string, labelNames: string[]): Gauge =>
    new Gauge({ name, help, labelNames, registers });
  const phases = gauge('refit_plans', '1 for the phase that the plan is in.', ['dialect', 'plan', 'phase']);
  const targets = gauge('refit_targets', 'Targets of the plan by phase.', ['dialect', 'plan', 'phase']);
  const waits = gauge('refit_waits', 'What holds targets of the plan back, by gate and reason.', [
    'dialect',
    'plan',
    'gate',
    'reason',
  ]);
  const steps = new Histogram({
    name: 'refit_step_duration_seconds',
    help: 'Time that one target spent in one step.',
    labelNames: ['dialect', 'step'],
    buckets: STEP_BUCKETS,
    registers,
  });
  const told = new Map<string, PlanMeasure>();
  const forget = (dialect: string, plan: string): void => {
    const before = told.get(`${dialect} ${plan}`);
    told.delete(`${dialect} ${plan}`);
    if (!before) return;
    phases.remove({ dialect, plan, phase: before.phase });
    for (const phase of before.targets.keys()) targets.remove({ dialect, plan, phase });
    for (const { gate, reason } of before.waits) waits.remove({ dialect, plan, gate, reason });
  };
  return {
    plan: (measure) => {
      const { dialect, plan, phase } = measure;
      forget(dialect, plan);
      told.set(`${dialect} ${plan}`, measure);
      phases.set({ dialect, plan, phase }, 1);
      for (const [each, count] of measure.targets) targets.set({ dialect, plan, phase: each }, count);
      for (const { gate, reason } of measure.waits) waits.inc({ dialect, plan, gate, reason });
    },
    forgetPlan: forget,
    stepDone: (dialect, step, seconds) => steps.observe({ dialect, step }, seconds),
  };
}
