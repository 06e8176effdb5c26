/** The contract of a control (pause, resume, abort, retry): a function from a plan to the annotations to write and the text to print. */

import type { ShownPlan } from '../status/json-form.ts';
import type { Inspection } from '../status/observe.ts';
import { movingRows, sentenceOf } from '../status/sentences.ts';

export interface ControlledPlan extends Inspection {
  readonly view: ShownPlan;
  /** True if the cluster has other plans, so that a command without `--plan` may choose another plan. */
  readonly hasOthers?: boolean;
}

export interface PlanChange {
  /**
   * Annotations to write on the plan. The value null removes an annotation. The field is absent if the control changes
   * nothing.
   */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** Sentences to print after the change is written. */
  readonly said: readonly string[];
}

/**
 * Returns what to change on the plan, and what to print. `now` is in milliseconds. Throws REFIT_CONTROL if the plan does not permit the
 * control.
 */
export type Control = ((plan: ControlledPlan, now: number) => PlanChange) & {
  /**
   * Returns true for a plan to which the control can apply. If the user names no plan, the command calls this function
   * to choose one.
   */
  readonly isMeant?: (plan: Inspection) => boolean;
  /** Returns true for a plan that the control is about, although it does not change this plan now. */
  readonly isAbout?: (plan: Inspection) => boolean;
};

/** Returns a sentence with the nodes that are in progress and will finish. */
export function inProgress(view: ShownPlan, now: number): string {
  const moving = movingRows(view, now).map(sentenceOf);
  return moving.length === 0
    ? 'No node is in progress.'
    : `In progress, will finish: ${moving.join('; ')}.`;
}
