/** Tests the values of the metrics about a plan and about the steps of its targets. */
import { expect, test } from 'vitest';
import { succeeded, working } from '../../../test/support/builders/observations.ts';
import { buildPolicy } from '../../../test/support/builders/rollout-policies.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildSnapshot } from '../../../test/support/builders/snapshots.ts';
import { buildStage } from '../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { later, T0 } from '../../../test/support/clock/times.ts';
import { type Metrics, noMetrics, type PlanMeasure } from '../../runtime/metrics.ts';
import { assess } from '../assess/assess.ts';
import { type PlanReading, readPlan } from '../explain/plan-reading.ts';
import type { Wait } from '../model/decision.ts';
import type { Observation } from '../model/facts.ts';
import { because } from '../model/reasons.ts';
import type { RecordedState } from '../model/rollout.ts';
import { measurePlan, measureSteps } from './measures.ts';

const PLAN = { metadata: { name: 'plan', namespace: 'ns' } };
const NOTHING = {
  pending: 0,
  intended: 0,
  done: 0,
  failed: 0,
  missing: 0,
  unsupported: 0,
  skipped: 0,
  signalled: 0,
  working: 0,
  verifying: 0,
};
const WAITS: readonly Wait[] = [
  {
    gate: 'drain-possible',
    reason: because('DrainPreviewUnknown', 'not asked'),
    since: later(0),
  },
  { gate: 'not-paused', reason: because('Paused', 'the plan is paused'), since: later(0) },
];

function measureOf(change: (reading: PlanReading) => PlanReading): PlanMeasure | undefined {
  const states: Readonly<Record<string, RecordedState>> = {
    w1: 'done',
    w2: 'done',
    w3: 'intended',
    w4: 'pending',
  };
  const targets = Object.entries(states).map(([name, state]) => buildTarget(name, state));
  const rollout = buildRollout([buildStage('worker', targets)]);
  const snapshot = buildSnapshot(rollout, { w3: { observation: working('Restart') } });
  const assessment = assess(snapshot, buildPolicy(), T0);
  const reading = change(readPlan(assessment, { waits: WAITS }));
  let measured: PlanMeasure | undefined;
  const plan: Metrics['plan'] = (measure) => {
    measured = measure;
  };
  measurePlan({ ...noMetrics, plan }, 'table', { plan: PLAN, assessment }, reading);
  return measured;
}

test('a plan is measured by its phase, the phases of its targets, and the waits that are no open questions', () => {
  expect(measureOf((reading) => reading)).toEqual({
    dialect: 'table',
    plan: 'ns/plan',
    phases: {
      new: 0,
      running: 1,
      done: 0,
      failed: 0,
      incomplete: 0,
      invalid: 0,
      edited: 0,
      differs: 0,
      empty: 0,
    },
    targets: { ...NOTHING, done: 2, working: 1, pending: 1 },
    waits: [{ gate: 'not-paused', reason: 'Paused' }],
    checks: [],
    percent: 50,
    etaSeconds: undefined,
  });
});

test('the health checks are measured with their states', () => {
  const check = { name: 'errors', state: 'failing', message: 'x', since: T0, at: T0 } as const;
  const measured = measureOf((reading) => ({
    ...reading,
    findings: { ...reading.findings, checks: [check] },
  }));
  expect(measured?.checks).toEqual([{ check: 'errors', state: 'failing' }]);
});

test.each([
  ['in seconds', 90_400, 90],
  ['as zero once it has passed', -5000, 0],
])('the time until the expected end is measured %s', (_title, ms, seconds) => {
  const at = new Date(T0 + ms).toISOString();
  const eta = { at, earliest: at, latest: at };
  expect(measureOf((reading) => ({ ...reading, eta }))?.etaSeconds).toBe(seconds);
});

/** Returns the measured steps of the target w1, whose recorded state changes from `before` to `after`. */
function stepsOf(before: RecordedState, after: RecordedState, observation: Observation): string[] {
  const rolloutOf = (state: RecordedState) =>
    buildRollout([buildStage('worker', [buildTarget('w1', state)])]);
  const steps: string[] = [];
  const stepDone: Metrics['stepDone'] = (dialect, step, seconds) =>
    steps.push(`${dialect} ${step} ${seconds}`);
  const snapshot = buildSnapshot(rolloutOf(before), { w1: { observation } });
  measureSteps({ ...noMetrics, stepDone }, 'table', snapshot, rolloutOf(after), false);
  return steps;
}

const REPORTED: Observation = {
  kind: 'succeeded',
  attempt: later(0),
  since: later(0),
  report: { spent: { Downloading: 4000, Restart: 8500 } },
};

test.each<[string, RecordedState, RecordedState, Observation, string[]]>([
  ['that is done now', 'intended', 'done', REPORTED, ['table Downloading 4', 'table Restart 8.5']],
  ['that was done before', 'done', 'done', REPORTED, []],
  ['that has failed', 'intended', 'failed', REPORTED, []],
  ['without a report', 'intended', 'done', succeeded(), []],
  ['without a signal', 'intended', 'done', { kind: 'none' }, []],
])(
  'the steps of a target %s are measured in seconds, once',
  (_title, before, after, observation, steps) => {
    expect(stepsOf(before, after, observation)).toEqual(steps);
  },
);
