/** The JSON form of `refit preview` (docs/reference/cli.md), made from that of `refit status`. */
import type { RolloutPhase } from '../../engine/model/recorded.ts';
import type { LeaderView } from '../status/leader.ts';
import { isMoving } from '../status/sentences.ts';
import type { PlanView, StageView } from '../status/view.ts';
import type { Download, Duration, PlanDrainPreview, PolicyRule } from './findings.ts';

/** `reason`: why the plan will be refused, does nothing, or is about to fail. */
export interface PlanPreview
  extends Pick<PlanView, 'dialect' | 'kind' | 'name' | 'id' | 'phase' | 'reason' | 'waits' | 'unseen'>,
    PreviewFindings {
  /** Phase of the plan with that name in the cluster. */
  readonly present?: RolloutPhase;
  readonly stages: readonly StagePreview[];
}

export interface PreviewFindings {
  readonly policy?: PolicyRule;
  /** Absent if the leader drains no Node of the plan. */
  readonly drains?: PlanDrainPreview;
  /** As this machine reaches them; absent if not checked. */
  readonly downloads?: readonly Download[];
  /** Absent if nothing is left to do. */
  readonly duration?: Duration;
}

export interface PreviewView {
  readonly leader: LeaderView;
  readonly plans: readonly PlanPreview[];
}

export function previewOf(plan: PlanView, findings: PreviewFindings = {}, present?: RolloutPhase): PlanPreview {
  const { dialect, kind, name, id, phase, reason, stages, waits, unseen } = plan;
  return {
    dialect,
    kind,
    name,
    id,
    phase,
    ...(present === undefined ? {} : { present }),
    ...(reason === undefined ? {} : { reason }),
    stages: stages.map(stagePreview),
    waits,
    ...findings,
    ...(unseen === undefined ? {} : { unseen }),
  };
}

export interface StagePreview extends Pick<StageView, 'command' | 'role' | 'version' | 'maxInFlight' | 'selection'> {
  /** How many are done. */
  readonly done: number;
  /** Names of the targets in progress. */
  readonly moving: readonly string[];
  /** Names of the pending targets, in order, as many in a wave as there are slots. */
  readonly waves: readonly (readonly string[])[];
}

export function stagePreview({ command, role, version, maxInFlight, selection, targets }: StageView): StagePreview {
  const pending = targets.filter(({ phase }) => phase === 'pending').map(({ name }) => name);
  const size = Math.max(1, maxInFlight);
  return {
    command,
    role,
    version,
    maxInFlight,
    ...(selection === undefined ? {} : { selection }),
    done: targets.filter(({ phase }) => phase === 'done').length,
    moving: targets.filter(isMoving).map(({ name }) => name),
    waves: Array.from({ length: Math.ceil(pending.length / size) }, (_, index) =>
      pending.slice(index * size, (index + 1) * size),
    ),
  };
}
