/** Owns what `refit status` tells of one plan: a stable JSON form, from which every output is rendered. */
import type { Dialect } from '../../engine/dialect.ts';
import type { CampaignPhase, Decision, Role, Snapshot, Stage, Target, TargetPhase, Wait } from '../../engine/model.ts';
import { factsOf } from '../../engine/progress.ts';
import { freeSlots, limitOf } from '../../engine/schedule/slots.ts';
import { activeStage } from '../../engine/stages.ts';

export interface TargetView {
  readonly name: string;
  readonly phase: TargetPhase;
  /** What the node says it is at; absent where it says nothing. */
  readonly step?: string;
  /** RFC 3339: since when it is at that. */
  readonly since: string;
  /** Version it had before, as far as its agent told. */
  readonly from?: string;
  /** Milliseconds in each step that is over. */
  readonly spent?: Readonly<Record<string, number>>;
  /** Why it failed. */
  readonly failure?: string;
}

export interface StageView {
  readonly command: number;
  readonly role: Role;
  readonly version: string;
  readonly maxInFlight: number;
  readonly targets: readonly TargetView[];
}

export interface PlanView {
  readonly dialect: string;
  readonly kind: string;
  readonly name: string;
  readonly id: string;
  /** RFC 3339. */
  readonly created: string;
  readonly phase: CampaignPhase;
  /** One sentence: why it ended badly, is about to, or cannot start. */
  readonly reason?: string;
  readonly stages: readonly StageView[];
  readonly waits: readonly Wait[];
  /** Names of the targets that start next, in order. */
  readonly next: readonly string[];
}

export function viewOf(dialect: Pick<Dialect, 'name'>, snapshot: Snapshot, decision: Decision): PlanView {
  const { campaign } = snapshot;
  const problem = campaign.problems[0];
  const reason = campaign.reason ?? problem;
  return {
    dialect: dialect.name,
    kind: campaign.source.kind,
    name: campaign.source.name,
    id: campaign.id,
    created: campaign.source.created,
    phase: campaign.phase,
    ...(reason ? { reason: reason.message } : {}),
    stages: campaign.stages.map((stage) => stageView(stage, snapshot, decision)),
    waits: decision.waits,
    next: nextOf(activeStage(campaign)),
  };
}

function stageView(stage: Stage, snapshot: Snapshot, { phases }: Decision): StageView {
  return {
    command: stage.command,
    role: stage.role,
    version: Object.values(stage.payloads)[0]?.version ?? '',
    maxInFlight: limitOf(stage),
    targets: stage.targets.map((target) => targetView(target, snapshot, phases.get(target.key) ?? 'pending')),
  };
}

function targetView(target: Target, snapshot: Snapshot, phase: TargetPhase): TargetView {
  const { observation } = factsOf(snapshot, target);
  if (observation.kind === 'none') return { name: target.name, phase, since: target.since };
  const { from, spent } = observation.report ?? {};
  return {
    name: target.name,
    phase,
    ...(observation.kind === 'working' ? { step: observation.step } : {}),
    since: observation.since,
    ...(from === undefined ? {} : { from }),
    ...(spent === undefined ? {} : { spent }),
    ...(observation.kind === 'failed' ? { failure: observation.message } : {}),
  };
}

/** The pending targets that fill the slots when what is in flight is done. */
function nextOf(stage: Stage | undefined): string[] {
  if (!stage) return [];
  const pending = stage.targets.filter(({ state }) => state === 'pending').map(({ name }) => name);
  return pending.slice(0, Math.max(freeSlots(stage), limitOf(stage)));
}
