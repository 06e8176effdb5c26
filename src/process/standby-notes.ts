/** Tells of plans that k0s's own leader carries out against the version rules: a standby decides nothing, an Event is no decision. */
import type { RolloutController } from '../engine/controller.ts';
import type { Election } from '../kube/election/election.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Runnable } from '../runtime/manager.ts';
import { isK0sLeader } from '../signal/names.ts';
import { sleep } from '../util/clock.ts';
import type { Tools } from '../util/tools.ts';

export interface StandbyNotesParts extends Pick<Tools, 'clock'> {
  readonly election: Pick<Election, 'leader'>;
  readonly rollouts: readonly Pick<RolloutController, 'plans' | 'brokenRuleOf'>[];
  readonly events: Pick<EventRecorder, 'record'>;
}

/** As often as a candidate reads the lease: only that tells who leads. */
const LOOK_EVERY_MS = 2_000;

/** One Event for each version of a plan, however many replicas wait. */
export function standbyNotes({ election, rollouts, events, clock }: StandbyNotesParts): Runnable {
  const judged = new Set<string>();
  const look = ({ plans, brokenRuleOf }: StandbyNotesParts['rollouts'][number]): void => {
    for (const plan of plans.list()) {
      const once = `${plan.metadata.uid}.${plan.metadata.generation}`;
      if (judged.has(once)) continue;
      judged.add(once);
      const broken = brokenRuleOf(plan);
      const message = `${broken?.message}. k0s's own leader carries the plan out all the same`;
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
