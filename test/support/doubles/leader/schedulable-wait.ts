/** The pass that checks the progress of the targets, and whether the next target may be signalled. */
import { decodeSignal } from '../../../../src/signal/annotations.ts';
import type { CommandView, Group } from './command-view.ts';
import type { LeaderParts, Pass } from './parts.ts';

export const schedulableWait: Pass = (parts, view, plan) => {
  for (const group of view.groups) readBack(parts, view, group, plan.spec.id ?? '');
  return Promise.resolve(verdict(view));
};

function verdict({ groups }: CommandView): Awaited<ReturnType<Pass>> {
  const entries = groups.flatMap((group) => group.entries);
  if (entries.some(({ state }) => state === 'SignalApplyFailed')) return 'ApplyFailed';
  const active = groups.find((group) =>
    group.entries.some(({ state }) => state !== 'SignalCompleted'),
  );
  if (active === undefined) return 'Completed';
  const count = (state: string): number =>
    active.entries.filter((entry) => entry.state === state).length;
  // The limit that a plan has for controllers is never read: they are updated one at a time.
  const slots = active.role === 'controllers' ? 1 : (active.target?.limits?.concurrent ?? 1);
  return count('SignalPending') > 0 && count('SignalSent') < slots ? 'Schedulable' : 'again';
}

/**
 * Reads the results of signals back into the status. It compares only the plan and the kind of the command, not the
 * command itself. So the end of an earlier command of the same kind counts for this command.
 */
function readBack(
  { cache, log }: LeaderParts,
  { kind }: CommandView,
  { resource, entries }: Group,
  planId: string,
) {
  for (const entry of entries) {
    if (entry.state === 'SignalCompleted') continue;
    const object = cache.get(resource, entry.name);
    if (object === undefined) {
      log.warn('there is no such object', { name: entry.name });
      continue;
    }
    const signal = decodeSignal(object.metadata.annotations);
    if (signal?.planId !== planId || signal.command.kind !== kind) continue;
    const status = signal.status?.status;
    if (status === 'Completed') entry.state = 'SignalCompleted';
    else if (status === 'Failed' || status === 'FailedDownload') entry.state = 'SignalApplyFailed';
  }
}
