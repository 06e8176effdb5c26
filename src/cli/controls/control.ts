/** The contract of a control (pause, resume, abort, retry): from the plan as it is to what is written on it and printed. */
import type { Inspection } from '../status/observe.ts';
import { movingRows, sentenceOf } from '../status/sentences.ts';
import type { PlanView } from '../status/view.ts';

export interface ControlledPlan extends Inspection {
  readonly view: PlanView;
  /** True if a command without `--plan` may not find this plan, because there are others. */
  readonly hasOthers?: boolean;
}

export interface PlanChange {
  /** Annotations to write on the plan; null removes one. Absent if nothing changes. */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** Sentences, printed once the change is written. */
  readonly said: readonly string[];
}

/** Decides on the plan as it is `now`. Throws REFIT_CONTROL if the control makes no sense for it. */
export type Control = ((plan: ControlledPlan, now: number) => PlanChange) & {
  /** True for a plan that can be meant, where the user names none. */
  readonly isMeant?: (plan: Inspection) => boolean;
};

export function inProgress(view: PlanView, now: number): string {
  const moving = movingRows(view, now).map(sentenceOf);
  return moving.length === 0
    ? 'No node is in progress.'
    : `In progress, will finish: ${moving.join('; ')}.`;
}
