/** Tells the waits that are a part of every rollout from those that people may want to end. */
import type { Wait } from '../model/decision.ts';
import type { ReasonCode } from '../model/reasons.ts';

const ROUTINE: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  // A completed target waits only until the leader has recorded the completion.
  'Completed',
  'InFlight',
  'Intended',
  'Signalled',
  'NoFreeSlot',
  'EarlierStage',
  'DownloadPending',
]);

/** Returns true if the target of the wait is in progress, or if it waits only for other targets. */
export function isRoutine({ reason }: Pick<Wait, 'reason'>): boolean {
  return ROUTINE.has(reason.code);
}
