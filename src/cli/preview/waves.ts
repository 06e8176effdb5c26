/** Owns the waves of a stage: who is done, who moves, and who follows together with whom. */
import { isMoving } from '../status/sentences.ts';
import type { StageView } from '../status/view.ts';

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
