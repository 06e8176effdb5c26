/** Owns what `refit preview` tells: a stable JSON form (docs/reference/cli.md), made of what `refit status` sees. */
import type { RolloutPhase } from '../../engine/model/recorded.ts';
import type { LeaderView } from '../status/leader.ts';
import type { PlanView } from '../status/view.ts';
import type { Download } from './downloads.ts';
import type { PlanDrainPreview } from './drains.ts';
import type { Duration } from './duration.ts';
import type { PolicyRule } from './policy-rule.ts';
import { type StagePreview, stagePreview } from './waves.ts';

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
