/** Owns the way from a Plan to its campaign: as its status records it, or with its targets found for the first time. */
import type { CommandStatus, K0sUpdate, Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import { plans } from '../../api/autopilot/plan.ts';
import type { World } from '../../engine/dialect.ts';
import { PLAN_HOLDS } from '../../engine/ledgers.ts';
import type { Campaign, CampaignPhase, Payload, Role, Stage, Target } from '../../engine/model.ts';
import type { Reason } from '../../engine/reasons.ts';
import { sourceOf } from '../../engine/source.ts';
import { rfc3339 } from '../../util/clock.ts';
import { discover, withoutControllers } from './discovery.ts';
import { unfold } from './ledgers/unfold.ts';
import { problemsOf } from './problems.ts';
import { reasonOf } from './recorded-reason.ts';
import { phaseOfPlan, recordedStateOf } from './states.ts';

export function resolve(stored: Plan, world: World, now: number): Campaign {
  const { plan, unread } = unfold(stored, world);
  const { spec, status } = plan;
  const phase = phaseOfPlan(status?.state);
  const problems = problemsOf(plan);
  const isNew = phase === 'new';
  const stages = isNew && problems.length === 0 ? newStages(plan, world, now) : recordedStages(plan);
  return {
    source: sourceOf(plans, plan),
    id: spec.id,
    phase,
    blocked: status?.state === 'Schedulable',
    reason: recordedReason(phase, status?.commands ?? []),
    stages,
    problems,
    unread,
  };
}

function newStages({ spec }: Plan, world: World, now: number): Stage[] {
  const since = rfc3339(now);
  return spec.commands.flatMap(({ k0supdate }, command) => {
    if (!k0supdate) return [];
    const { controllers, workers } = k0supdate.targets;
    const pending = (role: Role, names: readonly string[]): Target[] =>
      names.map((name) => ({ key: keyOf(command, role, name), name, state: 'pending', since }));
    const workerNames = withoutControllers(discover(workers, 'worker', world), Object.keys(k0supdate.platforms), world);
    return [
      stage(k0supdate, command, 'controller', pending('controller', discover(controllers, 'controller', world))),
      stage(k0supdate, command, 'worker', pending('worker', workerNames)),
    ];
  });
}

/** What was recorded counts, even of a command that is gone from the plan: its targets may be in flight. */
function recordedStages({ spec, status }: Plan): Stage[] {
  return (status?.commands ?? []).flatMap(({ id, k0supdate: recorded }) => {
    const update = spec.commands[id]?.k0supdate;
    if (!update && !recorded) return [];
    return [
      stage(update, id, 'controller', recordedTargets(recorded?.controllers, id, 'controller')),
      stage(update, id, 'worker', recordedTargets(recorded?.workers, id, 'worker')),
    ];
  });
}

/** Without an update in the plan there is nothing to signal. */
function stage(update: K0sUpdate | undefined, command: number, role: Role, targets: Target[]): Stage {
  return {
    id: `${command}/${role}s`,
    command,
    role,
    maxInFlight: role === 'controller' ? 1 : Math.min(update?.targets.workers?.limits?.concurrent ?? 1, PLAN_HOLDS),
    version: update?.version ?? '',
    payloads: update ? payloadsOf(update) : {},
    forced: update?.forceupdate ?? false,
    targets,
  };
}

function payloadsOf({ platforms }: K0sUpdate): Record<string, Payload> {
  return Object.fromEntries(
    Object.entries(platforms).map(([platform, { url, sha256 }]): [string, Payload] => [
      platform,
      { url, ...(sha256 ? { sha256: sha256.toLowerCase() } : {}) },
    ]),
  );
}

function recordedTargets(entries: readonly TargetStatus[] = [], command: number, role: Role): Target[] {
  return entries.map(({ name, state, lastUpdatedTimestamp }) => ({
    key: keyOf(command, role, name),
    name,
    state: recordedStateOf(state),
    since: lastUpdatedTimestamp,
  }));
}

function keyOf(command: number, role: Role, name: string): string {
  return `${command}/${role}/${name}`;
}

function recordedReason(phase: CampaignPhase, commands: readonly CommandStatus[]): Reason | undefined {
  const description = commands.find((command) => command.description)?.description;
  return description === undefined ? undefined : reasonOf(description, phase);
}
