/** Owns what is measured of a rollout at each decision. */
import type { Metrics } from '../../runtime/metrics.ts';
import { factsOf } from '../gates/context.ts';
import type { Decision } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import { isUnasked } from '../model/reasons.ts';
import type { Rollout } from '../model/recorded.ts';

/** Of a decision that nothing more is recorded for. */
export function measurePlan(
  metrics: Metrics,
  dialect: string,
  plan: string,
  { rollout }: Snapshot,
  { phases, waits }: Decision,
): void {
  const targets = new Map<string, number>();
  for (const phase of phases.values()) targets.set(phase, (targets.get(phase) ?? 0) + 1);
  const held = waits.filter(({ reason }) => !isUnasked(reason));
  metrics.plan({
    dialect,
    plan,
    phase: rollout.phase,
    targets,
    waits: held.map(({ gate, reason }) => ({ gate, reason: reason.code })),
  });
}

/** The steps of every target that `after` records as done and the snapshot did not. */
export function measureSteps(metrics: Metrics, dialect: string, snapshot: Snapshot, after: Rollout): void {
  const before = new Set(
    snapshot.rollout.stages.flatMap(({ targets }) =>
      targets.filter(({ state }) => state === 'done').map(({ key }) => key),
    ),
  );
  const done = after.stages.flatMap(({ targets }) =>
    targets.filter(({ key, state }) => state === 'done' && !before.has(key)),
  );
  for (const target of done) {
    const { observation } = factsOf(snapshot, target);
    const spent = observation.kind === 'none' ? undefined : observation.report?.spent;
    for (const [step, ms] of Object.entries(spent ?? {})) metrics.stepDone(dialect, step, ms / 1000);
  }
}
