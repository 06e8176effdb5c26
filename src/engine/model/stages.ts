/** Reads and replaces parts of a rollout: its active stage, and its targets by state. */
import type { RecordedState, Rollout, Stage, Target } from './recorded.ts';

const SETTLED: ReadonlySet<RecordedState> = new Set(['done', 'failed', 'missing', 'unsupported']);

export function isSettled({ state }: Target): boolean {
  return SETTLED.has(state);
}

/** The first stage that is not over: only there anything moves. */
export function activeStage({ stages }: Rollout): Stage | undefined {
  return stages.find((stage) => !isOver(stage));
}

export function stagesBefore({ stages }: Pick<Rollout, 'stages'>, { id }: Stage): readonly Stage[] {
  const own = stages.findIndex((stage) => stage.id === id);
  return stages.slice(0, Math.max(0, own));
}

function isOver({ targets, failedHoldSlots }: Stage): boolean {
  return targets.every((target) => (failedHoldSlots === true ? target.state === 'done' : isSettled(target)));
}

export function targetsIn({ stages }: Pick<Rollout, 'stages'>, ...states: readonly RecordedState[]): Target[] {
  return stages.flatMap(({ targets }) => targets.filter(({ state }) => states.includes(state)));
}

export interface StateChange {
  readonly stage: Stage;
  readonly target: Target;
  readonly before: Target | undefined;
}

/** The targets of `after` whose recorded state is new. */
export function stateChanges(before: Rollout, after: Rollout): StateChange[] {
  const known = new Map(before.stages.flatMap(({ targets }) => targets.map((target) => [target.key, target] as const)));
  return after.stages.flatMap((stage) =>
    stage.targets
      .map((target) => ({ stage, target, before: known.get(target.key) }))
      .filter((change) => change.before?.state !== change.target.state),
  );
}

/** Replaces targets by key; returns the same object if there are none. */
export function withTargets(rollout: Rollout, targets: readonly Target[]): Rollout {
  if (targets.length === 0) return rollout;
  const byKey = new Map(targets.map((target) => [target.key, target]));
  const replace = (stage: Stage): Stage =>
    stage.targets.some(({ key }) => byKey.has(key))
      ? { ...stage, targets: stage.targets.map((target) => byKey.get(target.key) ?? target) }
      : stage;
  return { ...rollout, stages: rollout.stages.map(replace) };
}
