/** Measures a rollout at each decision. */
import type { Metrics } from '../../runtime/metrics.ts';
import { factsOf } from '../gates/types.ts';
import type { Decision, Snapshot, TargetPhase } from '../model/decision.ts';
import { isUnasked } from '../model/reasons.ts';
import { type Rollout, type RolloutPhase, stateChanges } from '../model/recorded.ts';

const ENDED = { done: 0, failed: 0 } as const;
const ROLLOUT_PHASES: Record<RolloutPhase, number> = { new: 0, running: 0, incomplete: 0, invalid: 0, ...ENDED };
const IN_FLIGHT_PHASES = { intended: 0, signalled: 0, working: 0, verifying: 0 } as const;
const TARGET_PHASES = { pending: 0, ...IN_FLIGHT_PHASES, missing: 0, unsupported: 0, ...ENDED } as const;

export function measurePlan(
  metrics: Metrics,
  dialect: string,
  plan: string,
  { rollout }: Snapshot,
  { phases, waits }: Decision,
): void {
  const targets: Record<TargetPhase, number> = { ...TARGET_PHASES };
  for (const phase of phases.values()) targets[phase]++;
  const held = waits.filter(({ reason }) => !isUnasked(reason));
  metrics.plan({
    dialect,
    plan,
    phases: { ...ROLLOUT_PHASES, [rollout.phase]: 1 },
    targets,
    waits: held.map(({ gate, reason }) => ({ gate, reason: reason.code })),
  });
}

/** Measures the steps of every target that `after` newly records as done. */
export function measureSteps(metrics: Metrics, dialect: string, snapshot: Snapshot, after: Rollout): void {
  for (const { target } of stateChanges(snapshot.rollout, after)) {
    if (target.state !== 'done') continue;
    const { observation } = factsOf(snapshot, target);
    const spent = observation.kind === 'none' ? undefined : observation.report?.spent;
    for (const [step, ms] of Object.entries(spent ?? {})) metrics.stepDone(dialect, step, ms / 1000);
  }
}
