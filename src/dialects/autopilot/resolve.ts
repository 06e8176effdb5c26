/** Owns the way from a Plan to its campaign: as its status records it, or with its targets found for the first time. */
import type { CommandStatus, K0sUpdate, Plan, TargetStatus } from '../../api/autopilot/plan.ts';
import { plans } from '../../api/autopilot/plan.ts';
import type { World } from '../../engine/dialect.ts';
import type { Campaign, CampaignPhase, Payload, Role, Stage, Target } from '../../engine/model.ts';
import { because, type Reason, type ReasonCode } from '../../engine/reasons.ts';
import { apiVersionOf } from '../../kube/resources.ts';
import { rfc3339 } from '../../util/clock.ts';
import { discover, withoutControllers } from './discovery.ts';
import { problemsOf } from './problems.ts';
import { phaseOfPlan, recordedStateOf } from './states.ts';

export function resolve(plan: Plan, world: World, now: number): Campaign {
  const { metadata, spec, status } = plan;
  const phase = phaseOfPlan(status?.state);
  const problems = problemsOf(plan);
  const stages = phase === 'new' && problems.length > 0 ? [] : stagesOf(plan, phase, world, now);
  return {
    source: {
      apiVersion: apiVersionOf(plans),
      kind: plans.kind,
      name: metadata.name,
      uid: metadata.uid ?? '',
      created: metadata.creationTimestamp ?? '',
    },
    id: spec.id,
    phase,
    blocked: status?.state === 'Schedulable',
    reason: recordedReason(phase, status?.commands ?? []),
    stages,
    problems,
  };
}

function stagesOf({ spec, status }: Plan, phase: CampaignPhase, world: World, now: number): Stage[] {
  return spec.commands.flatMap(({ k0supdate }, command) => {
    if (!k0supdate) return [];
    const recorded = status?.commands.find(({ id }) => id === command)?.k0supdate;
    const { controllers, workers } = k0supdate.targets;
    const at = (role: Role, names: () => string[], entries: readonly TargetStatus[] | undefined): Target[] =>
      phase === 'new'
        ? names().map((name) => ({ key: keyOf(command, role, name), name, state: 'pending', since: rfc3339(now) }))
        : (entries ?? []).map((entry) => recordedTarget(entry, command, role));
    const platforms = Object.keys(k0supdate.platforms);
    const workerNames = (): string[] => withoutControllers(discover(workers, 'worker', world), platforms, world);
    const controllerNames = (): string[] => discover(controllers, 'controller', world);
    return [
      stage(k0supdate, command, 'controller', at('controller', controllerNames, recorded?.controllers)),
      stage(k0supdate, command, 'worker', at('worker', workerNames, recorded?.workers)),
    ];
  });
}

function stage(update: K0sUpdate, command: number, role: Role, targets: Target[]): Stage {
  const spec = role === 'controller' ? update.targets.controllers : update.targets.workers;
  return {
    id: `${command}/${role}s`,
    command,
    role,
    maxInFlight: role === 'controller' ? 1 : (spec?.limits?.concurrent ?? 1),
    payloads: Object.fromEntries(
      Object.entries(update.platforms).map(([platform, { url, sha256 }]): [string, Payload] => [
        platform,
        { version: update.version, url, ...(sha256 ? { sha256: sha256.toLowerCase() } : {}) },
      ]),
    ),
    forced: update.forceupdate ?? false,
    targets,
  };
}

function recordedTarget({ name, state, lastUpdatedTimestamp }: TargetStatus, command: number, role: Role): Target {
  const key = keyOf(command, role, name);
  return { key, name, state: recordedStateOf(state), since: lastUpdatedTimestamp };
}

function keyOf(command: number, role: Role, name: string): string {
  return `${command}/${role}/${name}`;
}

const REASON_CODES: Partial<Record<CampaignPhase, ReasonCode>> = {
  invalid: 'InvalidPlan',
  incomplete: 'TargetMissing',
};

function recordedReason(phase: CampaignPhase, commands: readonly CommandStatus[]): Reason | undefined {
  const description = commands.find((command) => command.description)?.description;
  return description === undefined ? undefined : because(REASON_CODES[phase] ?? 'TargetFailed', description);
}
