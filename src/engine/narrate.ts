/** Owns the story of a campaign: from what was recorded before and what is recorded now to the events that people read. */
import type { Campaign } from './model.ts';
import { because, type Reason } from './reasons.ts';
import { targetsIn } from './stages.ts';

export interface Announcement {
  readonly type: 'Normal' | 'Warning';
  readonly reason: Reason;
}

export function narrate(before: Campaign, after: Campaign): Announcement[] {
  const story: Announcement[] = [];
  if (before.phase === 'new' && after.phase === 'running') {
    const stages = after.stages.filter(({ targets }) => targets.length > 0).length;
    const message = `${counted(countOf(after), 'target')} in ${counted(stages, 'stage')}`;
    story.push({ type: 'Normal', reason: because('Started', message) });
  }
  if (after.reason && before.reason?.message !== after.reason.message) {
    story.push({ type: 'Warning', reason: after.reason });
  }
  if (after.phase === 'done' && before.phase !== 'done') story.push(endOf(after));
  return story;
}

/** Nothing to do is no failure, but hardly what anybody wanted: a selector that matches nothing looks just like this. */
function endOf(campaign: Campaign): Announcement {
  const count = countOf(campaign);
  if (count === 0) return { type: 'Warning', reason: because('Completed', 'there was no target, so nothing was done') };
  const done = targetsIn(campaign, 'done').length;
  const message = done === count ? `all ${count} targets are done` : `${done} of ${count} targets are done`;
  return { type: 'Normal', reason: because('Completed', message) };
}

function countOf({ stages }: Campaign): number {
  return stages.reduce((sum, { targets }) => sum + targets.length, 0);
}

function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}
