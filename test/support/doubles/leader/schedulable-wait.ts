/** The pass that looks how far the targets are, and whether the next one may be signalled. */
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
  // What a plan says about controllers is never read: one at a time.
  const slots = active.role === 'controllers' ? 1 : (active.target?.limits?.concurrent ?? 1);
  return count('SignalPending') > 0 && count('SignalSent') < slots ? 'Schedulable' : 'again';
}

/** Which command the signal was for is not compared, only its kind: an earlier command's end counts for this one. */
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
