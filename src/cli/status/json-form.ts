/** Makes the JSON forms of `refit status`, `refit why` and `refit preview` (docs/reference/cli.md). */
import type { PlanTexts } from '../contract/session-dialect.ts';

interface ViewOfPlans<Plan> {
  readonly plans: readonly Plan[];
}

/** Returns the JSON form of the view. It leaves out the texts of the dialects. */
export function jsonOf<Plan extends { readonly texts: PlanTexts }, View extends ViewOfPlans<Plan>>(
  view: View & ViewOfPlans<Plan>,
): Omit<View, 'plans'> & ViewOfPlans<Omit<Plan, 'texts'>> {
  return { ...view, plans: view.plans.map(({ texts: _texts, ...plan }) => plan) };
}
