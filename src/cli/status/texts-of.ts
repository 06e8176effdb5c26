/** Finds the texts of a dialect by its name. */
import { RefitError } from '../../util/errors.ts';
import type { PlanTexts } from '../contract/session-dialect.ts';

/** Returns the texts of the dialect with this name. Throws REFIT_INTERNAL if there is no such dialect. */
export type TextsOf = (dialect: string) => PlanTexts;

/** Returns a function that finds the texts. No dialect gets the texts of another one, because their advice would be wrong. */
export function textsIn(modules: readonly (PlanTexts & { readonly name: string })[]): TextsOf {
  const byName = new Map(modules.map((each) => [each.name, each]));
  return (dialect) => {
    const found = byName.get(dialect);
    if (found === undefined)
      throw new RefitError('REFIT_INTERNAL', `Refit has no texts for the dialect ${dialect}`);
    return found;
  };
}
