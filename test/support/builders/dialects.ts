/** The dialects and their texts, for tests. */
import type { PlanTexts } from '../../../src/cli/contract/dialect-module.ts';
import { textsIn } from '../../../src/cli/status/texts-of.ts';
import { MODULES } from '../../../src/dialects/modules.ts';

/** Returns the texts of the dialect with this name. */
export const textsOf = textsIn(MODULES);

/** Returns the texts of the dialect that the plan names. */
export function withTexts<T extends { readonly dialect: string }>(
  plan: T,
): T & { readonly texts: PlanTexts } {
  return { ...plan, texts: textsOf(plan.dialect) };
}
