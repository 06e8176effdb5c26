/** Events of a plan, from what was recorded before and what is recorded now. */
import type { Wait } from '../model/decided.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout } from '../model/recorded.ts';
import { targetsIn } from '../model/stages.ts';
import { unverifiedDownloads } from '../policy/payload-rules.ts';

export interface ReportedEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
}

/** `waits` are those of the rollout as it is recorded now. */
export function planEvents(before: Rollout, after: Rollout, waits: readonly Wait[] = []): ReportedEvent[] {
  const events: ReportedEvent[] = [];
  if (before.phase === 'new' && after.phase === 'running') {
    const stages = after.stages.filter(({ targets }) => targets.length > 0).length;
    const message = `${counted(countOf(after), 'target')} in ${counted(stages, 'stage')}`;
    events.push({ type: 'Normal', reason: because('Started', message) });
    events.push(...emptySelectionEvents(after));
    const unverified = unverifiedDownloads(after.stages);
    if (unverified !== undefined) events.push({ type: 'Warning', reason: because('Unverified', unverified) });
  }
  if (after.reason && before.reason?.message !== after.reason.message) {
    events.push({ type: 'Warning', reason: after.reason });
  }
  if (after.blocked && !before.blocked) events.push(...blockedEvents(after, waits));
  if (before.blocked && !after.blocked) events.push(...resumedEvents(before, after));
  if (after.phase === 'done' && before.phase !== 'done') events.push(...completedEvents(after));
  return events;
}

/** One Event when a gate blocks a free slot, in the words of `refit status`. */
function blockedEvents(rollout: Rollout, waits: readonly Wait[]): ReportedEvent[] {
  const pending = new Set(targetsIn(rollout, 'pending').map(({ name }) => name));
  const held = waits.find(({ target }) => target !== undefined && pending.has(target));
  return held ? [{ type: 'Warning', reason: held.reason }] : [];
}

/** One Event when targets start again after a block. */
function resumedEvents(before: Rollout, after: Rollout): ReportedEvent[] {
  const pending = new Set(targetsIn(before, 'pending').map(({ key }) => key));
  const names = targetsIn(after, 'intended').flatMap(({ key, name }) => (pending.has(key) ? [name] : []));
  const [first] = names;
  if (first === undefined) return [];
  const who = names.length === 1 ? first : `${first} and ${names.length - 1} more`;
  return [{ type: 'Normal', reason: because('Resumed', `No longer blocked: starting ${who}`) }];
}

function completedEvents(rollout: Rollout): ReportedEvent[] {
  const count = countOf(rollout);
  if (count === 0) return [];
  const done = targetsIn(rollout, 'done').length;
  const message = done === count ? `all ${count} targets are done` : `${done} of ${count} targets are done`;
  return [{ type: 'Normal', reason: because('Completed', message) }];
}

function countOf({ stages }: Rollout): number {
  return stages.reduce((sum, { targets }) => sum + targets.length, 0);
}

function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** A selector that matches nothing is often a mistake. */
function emptySelectionEvents({ stages }: Rollout): ReportedEvent[] {
  return stages
    .filter(({ targets, selection }) => targets.length === 0 && selection !== undefined)
    .map(({ command, role, selection }) => {
      const message = `command ${command} has no ${role}s: nothing matches ${selection}`;
      return { type: 'Warning', reason: because('NoTargets', message) };
    });
}
