/** Owns the way from a campaign to the status of its Plan, word for word as scripts written for the original expect it. */
import type { CommandStatus, Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import type { Campaign, Stage } from '../../engine/model.ts';
import { isFinal } from '../../engine/model.ts';
import { textOf } from './recorded-reason.ts';
import { PLAN_STATES, planStateOf, TARGET_STATES } from './states.ts';

/**
 * The entries of the first record stay, one for each command that the plan had then: a command that was added or removed
 * since must remain visible as such. Members that only later releases know stay too.
 */
export function project(campaign: Campaign, plan: Plan): Plan {
  const state = planStateOf(campaign.phase, campaign.blocked);
  const recorded = plan.status?.commands ?? [];
  const entries = recorded.length > 0 ? recorded : newEntries(plan);
  const active = entries.find((entry) => !isCompleted(campaign, entry));
  const telling = active ?? entries[0];
  const commands = entries.map((entry): CommandStatus => {
    const { description: _, ...kept } = entry;
    const isActive = entry.id === active?.id;
    return {
      ...kept,
      state: commandState(campaign, entry, isActive, state),
      ...(entry.id === telling?.id && campaign.reason ? { description: textOf(campaign.reason, campaign.phase) } : {}),
      ...targetsOf(campaign, entry),
    };
  });
  return { ...plan, status: { ...plan.status, state, commands } };
}

/** A plan without commands gets an entry all the same: the reason needs a place. */
function newEntries({ spec }: Plan): CommandStatus[] {
  return (spec.commands.length === 0 ? [{}] : spec.commands).map((_command, id) => ({ id, state: '' }));
}

function commandState(campaign: Campaign, entry: CommandStatus, isActive: boolean, planState: string): string {
  if (isCompleted(campaign, entry)) return PLAN_STATES.completed;
  return isActive || isFinal(campaign) ? planState : PLAN_STATES.schedulableWait;
}

/** A command that is not ours to carry out has no stages: it is completed where another leader said so. */
function isCompleted({ stages }: Campaign, { id, state }: CommandStatus): boolean {
  const own = stages.filter(({ command }) => command === id);
  if (own.length === 0) return state === PLAN_STATES.completed;
  return own.every(({ targets }) => targets.every((target) => target.state === 'done'));
}

function targetsOf({ stages }: Campaign, { id, k0supdate, airgapupdate }: CommandStatus): Partial<CommandStatus> {
  const own = stages.filter(({ command }) => command === id);
  const entries = (isOne: (stage: Stage) => boolean, recorded: readonly TargetStatus[] = []): TargetStatus[] =>
    own.filter(isOne).flatMap((stage) => statusOf(stage, recorded));
  const bundles = entries(isBundle, airgapupdate?.workers);
  const controllers = entries((stage) => !isBundle(stage) && stage.role === 'controller', k0supdate?.controllers);
  const workers = entries((stage) => !isBundle(stage) && stage.role === 'worker', k0supdate?.workers);
  const lists = { ...(controllers.length > 0 ? { controllers } : {}), ...(workers.length > 0 ? { workers } : {}) };
  return {
    ...(bundles.length > 0 ? { airgapupdate: { ...airgapupdate, workers: bundles } } : {}),
    ...(Object.keys(lists).length > 0 ? { k0supdate: { ...k0supdate, ...lists } } : {}),
  };
}

function isBundle({ procedure }: Stage): boolean {
  return procedure === 'airgapupdate';
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
