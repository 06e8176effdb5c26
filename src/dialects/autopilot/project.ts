/** Writes a rollout into the status of its Plan, in exactly the words of the original, which scripts rely on. */
import type { CommandStatus, Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import { isFinal, type Rollout, type Stage } from '../../engine/model/recorded.ts';
import { PLAN_STATES, planStateOf, TARGET_STATES, textOf } from './states.ts';
import { entriesIn, listOf, withEntries } from './status-shards/target-lists.ts';

/** Keeps one entry for each command of the first record, so that added or removed commands are detected, and unknown fields. */
export function project(rollout: Rollout, plan: Plan): Plan {
  const state = planStateOf(rollout.phase, rollout.blocked);
  const recorded = plan.status?.commands ?? [];
  // A plan without commands gets one entry, for the reason.
  const fresh = (plan.spec.commands.length === 0 ? [{}] : plan.spec.commands).map((_, id) => ({ id, state: '' }));
  const entries: readonly CommandStatus[] = recorded.length > 0 ? recorded : fresh;
  const active = entries.find((entry) => !isCompleted(rollout, entry));
  const described = active ?? entries[0];
  const commands = entries.map((entry): CommandStatus => {
    const { description: _, ...rest } = withTargets(rollout, entry);
    const isActive = entry.id === active?.id;
    return {
      ...rest,
      state: commandState(rollout, entry, isActive, state),
      ...(entry.id === described?.id && rollout.reason ? { description: textOf(rollout.reason, rollout.phase) } : {}),
    };
  });
  return { ...plan, status: { ...plan.status, state, commands } };
}

function commandState(rollout: Rollout, entry: CommandStatus, isActive: boolean, planState: string): string {
  if (isCompleted(rollout, entry)) return PLAN_STATES.completed;
  return isActive || isFinal(rollout) ? planState : PLAN_STATES.schedulableWait;
}

/** A command without stages is not supported here: it is completed if another leader recorded so. */
function isCompleted({ stages }: Rollout, { id, state }: CommandStatus): boolean {
  const own = stages.filter(({ command }) => command === id);
  if (own.length === 0) return state === PLAN_STATES.completed;
  return own.every(({ targets }) => targets.every((target) => target.state === 'done'));
}

/** Lists without stages stay as they are. */
function withTargets({ stages }: Rollout, entry: CommandStatus): CommandStatus {
  return stages
    .filter(({ command, targets }) => command === entry.id && targets.length > 0)
    .reduce(
      (status, stage) => withEntries(status, listOf(stage), statusOf(stage, entriesIn(entry, listOf(stage)))),
      entry,
    );
}

function statusOf({ targets }: Stage, recorded: readonly TargetStatus[]): TargetStatus[] {
  const byName = new Map(recorded.map((entry) => [entry.name, entry]));
  return targets.map(({ name, state, since }) => ({
    ...byName.get(name),
    name,
    state: TARGET_STATES[state],
    lastUpdatedTimestamp: since,
  }));
}
