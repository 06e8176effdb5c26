/** Owns what `refit preview` tells: a stable JSON form (docs/reference/cli.md), made of what `refit status` sees. */
import type { CampaignPhase, Role } from '../../engine/model.ts';
import { isMoving } from '../status/stage-lines.ts';
import type { PlanView, StageView, WaitView } from '../status/view.ts';

export interface StagePreview {
  readonly command: number;
  readonly role: Role;
  readonly version: string;
  readonly maxInFlight: number;
  /** How many are done. */
  readonly done: number;
  /** Names of those under way. */
  readonly moving: readonly string[];
  /** Names of those not begun, in order, as many together as there are slots. */
  readonly waves: readonly (readonly string[])[];
}

export interface PlanPreview {
  readonly dialect: string;
  readonly kind: string;
  readonly name: string;
  readonly id: string;
  readonly phase: CampaignPhase;
  /** Phase of the plan that the cluster has under the name of the file's. */
  readonly present?: CampaignPhase;
  /** Why it is refused as it stands, or is about to end. */
  readonly reason?: string;
  readonly stages: readonly StagePreview[];
  /** What the gates say now. */
  readonly waits: readonly WaitView[];
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
