/** Owns what `refit preview` tells: a stable JSON form (docs/reference/cli.md), made of what `refit status` sees. */
import type { CampaignPhase } from '../../engine/model.ts';
import { isMoving } from '../status/stage-lines.ts';
import type { PlanView, StageView } from '../status/view.ts';

export interface StagePreview extends Pick<StageView, 'command' | 'role' | 'version' | 'maxInFlight'> {
  /** How many are done. */
  readonly done: number;
  /** Names of those under way. */
  readonly moving: readonly string[];
  /** Names of those not begun, in order, as many together as there are slots. */
  readonly waves: readonly (readonly string[])[];
}

/** `reason`: why the plan is refused as it stands, does nothing, or is about to end badly. */
export interface PlanPreview extends Pick<PlanView, 'dialect' | 'kind' | 'name' | 'id' | 'phase' | 'reason' | 'waits'> {
  /** Phase of the plan that the cluster has under the name of the file's. */
  readonly present?: CampaignPhase;
  readonly stages: readonly StagePreview[];
}

export interface PreviewView {
  readonly plans: readonly PlanPreview[];
}

export function previewOf(plan: PlanView, present?: PlanView): PlanPreview {
  const { dialect, kind, name, id, phase, reason, stages, waits } = plan;
  return {
    dialect,
    kind,
    name,
    id,
    phase,
    ...(present === undefined ? {} : { present: present.phase }),
    ...(reason === undefined ? {} : { reason }),
    stages: stages.map(stagePreview),
    waits,
  };
}

function stagePreview({ command, role, version, maxInFlight, targets }: StageView): StagePreview {
  const pending = targets.filter(({ phase }) => phase === 'pending').map(({ name }) => name);
  const size = Math.max(1, maxInFlight);
  return {
    command,
    role,
    version,
    maxInFlight,
    done: targets.filter(({ phase }) => phase === 'done').length,
    moving: targets.filter(isMoving).map(({ name }) => name),
    waves: Array.from({ length: Math.ceil(pending.length / size) }, (_, index) =>
      pending.slice(index * size, (index + 1) * size),
    ),
  };
}
