/** Owns the story of a rollout: from what was recorded before and what is recorded now to the events that people read. */
import type { Wait } from '../model/decided.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout } from '../model/recorded.ts';
import { targetsIn } from '../model/stages.ts';
import { unverifiedDownloads } from '../policy/payload-rules.ts';

export interface Announcement {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
}

/** `waits` are those of the rollout as it is recorded now. */
export function planEvents(before: Rollout, after: Rollout, waits: readonly Wait[] = []): Announcement[] {
  const story: Announcement[] = [];
  if (before.phase === 'new' && after.phase === 'running') {
    const stages = after.stages.filter(({ targets }) => targets.length > 0).length;
    const message = `${counted(countOf(after), 'target')} in ${counted(stages, 'stage')}`;
    story.push({ type: 'Normal', reason: because('Started', message) });
    story.push(...emptySelections(after));
    const unverified = unverifiedDownloads(after.stages);
    if (unverified !== undefined) story.push({ type: 'Warning', reason: because('Unverified', unverified) });
  }
  if (after.reason && before.reason?.message !== after.reason.message) {
    story.push({ type: 'Warning', reason: after.reason });
  }
  if (after.blocked && !before.blocked) story.push(...heldBack(after, waits));
  if (before.blocked && !after.blocked) story.push(...goingOn(before, after));
  if (after.phase === 'done' && before.phase !== 'done') story.push(...endOf(after));
  return story;
}

/** A gate that holds a free slot back says so once, in the words that `refit status` uses. */
function heldBack(rollout: Rollout, waits: readonly Wait[]): Announcement[] {
  const pending = new Set(targetsIn(rollout, 'pending').map(({ name }) => name));
  const held = waits.find(({ target }) => target !== undefined && pending.has(target));
  return held ? [{ type: 'Warning', reason: held.reason }] : [];
}

/** That a gate lets them through is told where it was told that one did not, and somebody starts. */
function goingOn(before: Rollout, after: Rollout): Announcement[] {
  const pending = new Set(targetsIn(before, 'pending').map(({ key }) => key));
  const names = targetsIn(after, 'intended').flatMap(({ key, name }) => (pending.has(key) ? [name] : []));
  const [first] = names;
  if (first === undefined) return [];
  const who = names.length === 1 ? first : `${first} and ${names.length - 1} more`;
  return [{ type: 'Normal', reason: because('Resumed', `nothing holds targets back any more: next ${who}`) }];
}

function endOf(rollout: Rollout): Announcement[] {
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

/** A selector that matches nothing looks just like a mistake in it. */
function emptySelections({ stages }: Rollout): Announcement[] {
  return stages
    .filter(({ targets, selection }) => targets.length === 0 && selection !== undefined)
    .map(({ command, role, selection }) => {
      const message = `command ${command} has no ${role}s: nothing matches ${selection}`;
      return { type: 'Warning', reason: because('NoTargets', message) };
    });
}
