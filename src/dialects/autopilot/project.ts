/** Owns the way from a campaign to the status of its Plan, word for word as scripts written for the original expect it. */
import type { CommandStatus, Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import type { Campaign, Role, Stage } from '../../engine/model.ts';
import { isFinal } from '../../engine/model.ts';
import { isSettled } from '../../engine/stages.ts';
import { PLAN_STATES, planStateOf, TARGET_STATES } from './states.ts';

export function project(campaign: Campaign, plan: Plan): Plan {
  const state = planStateOf(campaign.phase, campaign.blocked);
  const ids = plan.spec.commands.map((_command, id) => id);
  const active = ids.find((id) => !isCompleted(campaign, id)) ?? 0;
  const commands = (ids.length === 0 ? [0] : ids).map((id): CommandStatus => {
    const description = id === active && campaign.reason ? { description: campaign.reason.message } : {};
    return { id, state: commandState(campaign, id, active, state), ...description, ...targetsOf(campaign, id) };
  });
  return { ...plan, status: { state, commands } };
}

function commandState(campaign: Campaign, id: number, active: number, planState: string): string {
  if (isCompleted(campaign, id)) return PLAN_STATES.completed;
  return id === active || isFinal(campaign) ? planState : PLAN_STATES.schedulableWait;
}

/** A refused plan has no stages, and none of its commands is completed. */
function isCompleted({ phase, stages }: Campaign, command: number): boolean {
  if (phase === 'invalid' || phase === 'incomplete') return false;
  const own = stages.filter((stage) => stage.command === command);
  return own.every(({ targets }) => targets.every((target) => isSettled(target) && target.state === 'done'));
}

function targetsOf({ stages }: Campaign, command: number): Pick<CommandStatus, 'k0supdate'> {
  const entries = (role: Role): TargetStatus[] =>
    stages.filter((stage) => stage.command === command && stage.role === role).flatMap(statusOf);
  const [controllers, workers] = [entries('controller'), entries('worker')];
  if (controllers.length + workers.length === 0) return {};
  return {
    k0supdate: { ...(controllers.length > 0 ? { controllers } : {}), ...(workers.length > 0 ? { workers } : {}) },
  };
}

function statusOf({ targets }: Stage): TargetStatus[] {
  return targets.map(({ name, state, since }) => ({ name, state: TARGET_STATES[state], lastUpdatedTimestamp: since }));
}
