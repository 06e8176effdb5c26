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
    const count = after.stages.reduce((sum, { targets }) => sum + targets.length, 0);
    story.push({ type: 'Normal', reason: because('Started', `${count} targets in ${after.stages.length} stages`) });
  }
  if (after.reason && before.reason?.message !== after.reason.message) {
    story.push({ type: 'Warning', reason: after.reason });
  }
  if (after.phase === 'done' && before.phase !== 'done') {
    const done = targetsIn(after, 'done').length;
    story.push({ type: 'Normal', reason: because('Completed', `all ${done} targets are done`) });
  }
  return story;
}
