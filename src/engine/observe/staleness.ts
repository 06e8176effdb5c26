/** Owns for how long a node that says nothing new counts as at work, although nobody follows it any more. */

/**
 * Milliseconds after its last sign of life: some are left in a state from which nothing leads on, and no plan could ever
 * mend them if that held it back.
 */
export const STALE_AFTER_MS = 2 * 60 * 60 * 1000;

/** `since` as RFC 3339; a time that cannot be read is no reason to look away. */
export function isAlive(since: string, now: number): boolean {
  return !(now - Date.parse(since) >= STALE_AFTER_MS);
}
