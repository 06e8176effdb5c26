/** The dialects and their texts, for tests. */
import type { PlanPreview, PreviewView } from '../../../src/cli/preview/view.ts';
import type { ShownPlan } from '../../../src/cli/status/json-form.ts';
import { textsIn } from '../../../src/cli/status/texts-of.ts';
import { MODULES } from '../../../src/dialects/modules.ts';

/** The JSON form of a preview. */
export interface PreviewJson extends Omit<PreviewView, 'plans'> {
  readonly plans: readonly Omit<PlanPreview, 'texts'>[];
}

/** All dialects, as the commands that only read see them. */
export const DIALECTS = await Promise.all(MODULES.map(async (each) => await each.view()));

/** Returns the texts of the dialect with this name. */
export const textsOf = textsIn(MODULES);

/** Returns the plan with the texts of its dialect. If the plan names no situation, it is in none. */
export function withTexts<T extends { readonly dialect: string }>(
  plan: T,
): T & Pick<ShownPlan, 'texts' | 'situations'> {
  return { situations: [], ...plan, texts: textsOf(plan.dialect) };
}
