/** Finds targets in progress that stall or rest, and remembers which of them have been reported. */
import type { Assessment } from '../assess/assess.ts';
import * as model from '../model/rollout.ts';
import type { TargetEvent } from './events.ts';

/** The targets in progress that stall, rest or have a refused write. */
interface IdleTargets {
  /** Events about the targets that stall now and did not stall at the last call. */
  readonly stalled: readonly TargetEvent[];
  /** Events about the targets that rest now and did not rest at the last call. */
  readonly rests: readonly TargetEvent[];
  /**
   * For each message about a stall or a refused write, the time since which it is true, in milliseconds since the Unix
   * epoch.
   */
  readonly stalls: ReadonlyMap<string, number>;
}

/**
 * Remembers which targets in progress stall or rest, and since which time, so that each stall and each rest is reported
 * only once.
 */
export interface IdleMemory {
  /** Returns the idle targets of the plan with this key, and what has changed since the last call for this plan. */
  at(key: string, assessment: Assessment): IdleTargets;
  /** Forgets the plan. */
  forget(key: string): void;
}

/** Returns an empty memory, for one term of leadership. */
export function idleMemory(): IdleMemory {
  const reported = new Map<string, ReadonlyMap<string, number>>();
  return {
    at(key, assessment) {
      const before = reported.get(key) ?? new Map<string, number>();
      const idle = idleTargets(assessment);
      const since = (event: TargetEvent): number => before.get(wordsOf(event)) ?? assessment.now;
      reported.set(key, new Map(idle.map((event) => [wordsOf(event), since(event)])));
      const fresh = idle.filter((event) => !before.has(wordsOf(event)));
      const stalling = idle.filter(({ reason }) => reason.code !== 'Resting');
      return {
        stalled: fresh.filter(({ reason }) => reason.code === 'Stalled'),
        rests: fresh.filter(({ reason }) => reason.code === 'Resting'),
        stalls: new Map(stalling.map((event) => [event.reason.message, since(event)])),
      };
    },
    forget: (key: string) => void reported.delete(key),
  };
}

/**
 * Returns the message without words that contain digits. Counts and ids change each time, although
 * the problem is the same.
 */
function wordsOf({ target, reason }: TargetEvent): string {
  const words = reason.message.split(' ').filter((word) => !/\d/.test(word));
  return [target.key, ...words].join(' ');
}

function idleTargets(assessment: Assessment): TargetEvent[] {
  const stage = model.activeStage(assessment.snapshot.rollout);
  if (!stage) return [];
  return model.inState(stage, 'intended').flatMap((target): TargetEvent[] => {
    const { reason, gate } = assessment.of(stage, target);
    // A refused write counts as a stall, but its Event was sent when it was refused.
    if (reason.code === 'Stalled' || gate === 'write')
      return [{ type: 'Warning', reason, stage, target }];
    return reason.code === 'Resting' ? [{ type: 'Normal', reason, stage, target }] : [];
  });
}
