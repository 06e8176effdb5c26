/** Finds the PodDisruptionBudgets that a sentence about a drain names (`blockedByBudget` in `src/drain/budgets.ts`). */

const BUDGET = /\bPodDisruptionBudget ([^\s/]+\/[^\s/:;,]+)/g;

/** Returns the names of the budgets as `namespace/name`, each once, in the order of the sentence. */
export function budgetsIn(sentence: string): string[] {
  return [...new Set([...sentence.matchAll(BUDGET)].flatMap(([, name]) => name ?? []))];
}
