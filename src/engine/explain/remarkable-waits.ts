/** Chooses the waits that are told to people, because they are neither short nor a part of every rollout. */
import { soonest } from '../../util/soonest.ts';
import type { Wait } from '../model/decision.ts';
import { isUnasked } from '../model/reasons.ts';

/** Milliseconds that a wait must last before it is reported, because most waits are short and each report is a write. */
export const SETTLE_MS = 10_000;

/** The gates and phases that every rollout waits for at some time. Conditions and Events do not report waits for them. */
const ORDINARY = new Set(['slots', 'stages', 'working', 'intended', 'signalled', 'verifying']);

/** Returns true if the target waits for something else than a slot, a stage, a node in progress or its own download. */
export function isRemarkable({ gate, reason }: Wait): boolean {
  return !ORDINARY.has(gate) && reason.code !== 'DownloadPending' && !isUnasked(reason);
}

/** Returns the first wait that is remarkable (see `isRemarkable`) and has lasted for SETTLE_MS; undefined if there is none. */
export function holdingOf(waits: readonly Wait[], now: number): Wait | undefined {
  return waits.find((each) => isRemarkable(each) && now - Date.parse(each.since) >= SETTLE_MS);
}

/**
 * Returns the milliseconds until a recent wait has lasted long enough to be shown; undefined if there is no recent
 * wait.
 */
export function settledAfter(waits: readonly Wait[], now: number): number | undefined {
  const left = waits.filter(isRemarkable).map(({ since }) => Date.parse(since) + SETTLE_MS - now);
  return soonest(left.filter((ms) => ms > 0));
}
