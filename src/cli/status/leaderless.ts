/** Marks the open plans that no leader carries out. */

import type { ShownPlan, ShownStatus } from './json-form.ts';
import { notesOf } from './text.ts';

/**
 * Returns true if no leader is working for the plan. A leader whose Lease is only late may still be working, because
 * clocks may differ.
 */
export function isLeaderless(
  { leader, silentSince }: Pick<ShownStatus, 'leader' | 'silentSince'>,
  plan: Pick<ShownPlan, 'phase' | 'texts'>,
): boolean {
  const isGone = leader.state === 'none' || leader.state === 'silent';
  return isGone && silentSince === undefined && notesOf({ leader, plans: [plan] }).length > 0;
}

/**
 * Returns true if k0s's own leader carries the plan out. It ignores the commands of Refit, so no output may propose one of
 * them.
 */
export function ignoresControls(
  { leader }: Pick<ShownStatus, 'leader'>,
  plan: Pick<ShownPlan, 'phase' | 'texts'>,
): boolean {
  return leader.state === 'held' && notesOf({ leader, plans: [plan] }).length > 0;
}

/** Returns the status whose plans say whether a leader carries them out. */
export function withLeaderless(status: ShownStatus): ShownStatus {
  const plans = status.plans.map((plan): ShownPlan => {
    const { leaderless: _, ...known } = plan;
    return isLeaderless(status, plan) ? { ...known, leaderless: true } : known;
  });
  return { ...status, plans };
}
