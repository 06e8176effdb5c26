/** Makes the JSON form of `refit status` and `refit why` (docs/reference/cli.md). */
import type { PlanView, StatusView } from './view.ts';

/** A status in the JSON form. It has data only. */
export interface StatusJson extends Omit<StatusView, 'plans'> {
  readonly plans: readonly Omit<PlanView, 'texts'>[];
}

/** Returns the JSON form of the view. */
export function jsonOf(view: StatusView): StatusJson {
  return { ...view, plans: view.plans.map(({ texts: _texts, ...plan }) => plan) };
}
