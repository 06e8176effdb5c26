/** Says that a wave waits for an approval, and what ends this wait. */

/** Returns the clause that says why a wave waits. */
export function needsApproval(wave: number, policy = ''): string {
  return `wave ${wave} needs approval by UpgradePolicy ${policy}`.trimEnd();
}

/** Returns what ends the wait for the approval of a wave, as a clause that follows "when". `plan` is the plan as commands name it. */
export function approvalEnds(plan: string, wave: number): string {
  return `somebody approves the wave: refit approve ${plan} --wave ${wave}`;
}
