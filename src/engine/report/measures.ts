/** Records the metrics of plans and of the steps of their targets. */
import { keyOf } from '../../kube/resources.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { phaseOf } from '../assess/assess.ts';
import type { PlanReading } from '../explain/plan-reading.ts';
import { percentOf } from '../explain/progress.ts';
import { factsOf } from '../gates/types.ts';
import { isUnasked } from '../model/reasons.ts';
import * as model from '../model/rollout.ts';
import { PLAN_PHASES, type TargetPhase } from '../model/shown-phases.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { stepReference } from './spans.ts';
import type { Turn } from './turn.ts';

const none = <P extends string>(phases: readonly P[]) =>
  Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<P, number>;

/**
 * Measures the phase of the plan, the phases of its targets, and its waits. Waits for a probe that
 * was not made yet are left out.
 */
export function measurePlan(
  metrics: Metrics,
  dialect: string,
  { plan, assessment }: Turn,
  { waits, end, counts, eta, findings, now }: PlanReading,
): void {
  const { rollout } = assessment.snapshot;
  const targets = none<TargetPhase>([
    ...model.RECORDED_STATES,
    'signalled',
    'working',
    'verifying',
  ]);
  for (const stage of rollout.stages)
    for (const target of stage.targets) targets[phaseOf(assessment, stage, target)]++;
  const held = waits.filter(({ reason }) => !isUnasked(reason));
  const heldBy = held.map(({ gate, reason }) => ({ gate, reason: reason.code }));
  const phases = { ...none(PLAN_PHASES), [end.phase]: 1 };
  const etaSeconds = eta && Math.max(0, Math.round((Date.parse(eta.at) - now) / 1000));
  metrics.plan({
    dialect,
    plan: keyOf(plan),
    phases,
    targets,
    waits: heldBy,
    checks: findings.checks.map(({ name, state }) => ({ check: name, state })),
    percent: percentOf(counts),
    etaSeconds,
  });
}

/**
 * Measures how long each step took, for targets that `after` records as done for the first time. If
 * the rollout is traced, each measure refers to the span of its step.
 */
export function measureSteps(
  metrics: Metrics,
  dialect: string,
  snapshot: Snapshot,
  after: model.Rollout,
  isTraced: boolean,
): void {
  for (const { target } of model.stateChanges(snapshot.rollout, after)) {
    if (target.state !== 'done') continue;
    const { observation } = factsOf(snapshot, target);
    if (observation.kind === 'none') continue;
    for (const [index, [step, ms]] of Object.entries(observation.report?.spent ?? {}).entries()) {
      const span = isTraced ? stepReference(after, target, observation, index, step) : undefined;
      metrics.stepDone(dialect, step, ms / 1000, span);
    }
  }
}
