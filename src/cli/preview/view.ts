/** Owns what `refit preview` tells: a stable JSON form (docs/reference/cli.md), made of what `refit status` sees. */
import type { RolloutPhase } from '../../engine/model/recorded.ts';
import type { LeaderView } from '../status/leader.ts';
import { isMoving } from '../status/sentences.ts';
import type { PlanView, StageView } from '../status/view.ts';
import type { Download } from './downloads.ts';
import type { PlanDrainPreview } from './drains.ts';
import type { Duration } from './duration.ts';
import type { PolicyRule } from './policy-rule.ts';

/** `reason`: why the plan is refused as it stands, does nothing, or is about to end badly. */
export interface PlanPreview
  extends Pick<PlanView, 'dialect' | 'kind' | 'name' | 'id' | 'phase' | 'reason' | 'waits' | 'unseen'>,
    DrainPreviews {
  /** Phase of the plan that the cluster has under the name of the file's. */
  readonly present?: RolloutPhase;
  readonly stages: readonly StagePreview[];
}

/** What was found out beside the plan and its nodes. */
export interface DrainPreviews {
  /** Absent where no UpgradePolicy covers the plan. */
  readonly policy?: PolicyRule;
  /** Absent where no target's Node is drained by the leader. */
  readonly drains?: PlanDrainPreview;
  /** By the machine where this runs; absent where nobody wanted to know, or there is nothing to download. */
  readonly downloads?: readonly Download[];
  /** Absent where nobody has anything left to do. */
  readonly duration?: Duration;
}

export interface PreviewView {
  /** Who would carry out what is `refit controller`'s. */
  readonly leader: LeaderView;
  readonly plans: readonly PlanPreview[];
}

export function previewOf(plan: PlanView, drainPreviews: DrainPreviews = {}, present?: RolloutPhase): PlanPreview {
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
    ...drainPreviews,
    ...(unseen === undefined ? {} : { unseen }),
  };
}

export interface StagePreview extends Pick<StageView, 'command' | 'role' | 'version' | 'maxInFlight' | 'selection'> {
  /** How many are done. */
  readonly done: number;
  /** Names of those under way. */
  readonly moving: readonly string[];
  /** Names of those not begun, in order, as many together as there are slots. */
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
