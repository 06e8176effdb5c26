/** The dialects and their texts, for tests. */
import type { PlanTexts } from '../../../src/cli/contract/session-dialect.ts';
import type { PlanPreview, PreviewView } from '../../../src/cli/preview/view.ts';
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

/** Returns the texts of the dialect that the plan names. */
export function withTexts<T extends { readonly dialect: string }>(
  plan: T,
): T & { readonly texts: PlanTexts } {
  return { ...plan, texts: textsOf(plan.dialect) };
}
