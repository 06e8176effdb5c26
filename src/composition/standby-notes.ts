/** Records Events while k0s's own leader carries out the plans, and this process only stands by. */
import type { RolloutController } from '../engine/rollout-controller.ts';
import type { Election } from '../kube/election/election.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Runnable } from '../runtime/manager.ts';
import { isK0sLeader } from '../signal/names.ts';
import { type Clock, sleep } from '../util/clock.ts';

interface StandbyTools {
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
}

/**
 * Milliseconds between two checks of the leader. Only the Lease contains the leader, and a candidate reads the Lease at
 * the same interval.
 */
const LOOK_EVERY_MS = 2_000;

/**
 * Returns a part of the process that records an Event for each plan that breaks the version rules while k0s's own
 * leader carries the plan out. A process that is not the leader may record these Events, because they do not affect any
 * decision.
 */
export function standbyNotes(
  election: Election,
  rollouts: readonly RolloutController[],
  parts: StandbyTools,
): Runnable {
  const { events, clock } = parts;
  const judged = new Set<string>();
  const look = ({ plans, brokenRuleOf }: RolloutController): void => {
    for (const plan of plans.list()) {
      // The name of the Event is made from this text, so it is the same in all replicas, and only one Event is created.
      const once = `${plan.metadata.uid}.${plan.metadata.generation}`;
      if (judged.has(once)) continue;
      judged.add(once);
      const broken = brokenRuleOf(plan);
      const message = `${broken?.message}. k0s's own leader carries the plan out nevertheless`;
      if (broken) events.record(plan, { type: 'Warning', reason: broken.code, message, once });
    }
  };
  return {
    name: 'standby-notes',
    async run(stop) {
      while (!stop.aborted) {
        if (isK0sLeader(election.leader())) rollouts.forEach(look);
        await sleep(clock, LOOK_EVERY_MS, stop).catch(() => undefined);
      }
    },
  };
}
