/** Lists the locks that Refit knows. Each lock belongs to one tool of `spec.coordinate`. */
import { disruptionLease } from './disruption-lease.ts';
import { kuredLock } from './kured-lock.ts';
import type { LockKind, ToolName } from './tool.ts';

export const LOCKS: readonly LockKind[] = [kuredLock, disruptionLease];

/** Returns the locks of the tools that a policy names. */
export function locksOf(coordinate: readonly ToolName[] = []): readonly LockKind[] {
  return LOCKS.filter(({ tool }) => coordinate.includes(tool));
}
