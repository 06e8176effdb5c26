/** Says that a plan was edited after its end. */

/** Returns a clause that says only how the plan was edited, for outputs that give the advice elsewhere. */
export function editedClause(edit: string): string {
  return `the plan was edited after it ended (${edit})`;
}
