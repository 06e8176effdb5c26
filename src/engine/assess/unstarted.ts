/** Finds the pending targets that do not start now: those that a gate holds back, and those that only lack a free slot. */
import { onceForEach } from '../../util/memo.ts';
import type { DecisionContext } from '../gates/types.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import * as slots from '../schedule/slots.ts';
import { choose } from './advance.ts';
import type { Assessment } from './assess.ts';

export interface Unstarted {
  /** The targets that a gate holds back, with the wait of the gate. */
  readonly waiting: readonly slots.GatedTarget[];
  /** The pending targets that start now, and so take the last free slots before the queued targets. */
  readonly starting: readonly Target[];
  /** The other pending targets of the stage, which wait for a free slot. */
  readonly queued: readonly Target[];
}

const NONE: Unstarted = { waiting: [], starting: [], queued: [] };

/**
 * Returns the pending targets of the active stage that do not start now. There are none if nothing new may start at
 * all, because then no gate is asked.
 */
export const unstartedTargets = onceForEach((assessment: Assessment): Unstarted => {
  const { stage, snapshot, isStopping, openSlots } = assessment;
  if (!stage || snapshot.rollout.unread || isStopping) return NONE;
  // If a gate blocks every target, this gate counts even if no slot is free, because a free slot would not end that
  // wait.
  const blocked = openSlots === 0 ? blockedAsOne(assessment, stage) : undefined;
  const { waiting, chosen } = blocked ?? choose(assessment, stage);
  const isBlockedAsOne = waiting.some(({ ofRollout }) => ofRollout === true);
  // If slots are free and the first targets wait for a gate, the gate was not evaluated for the later targets. These
  // later targets do not wait for a slot.
  const isTaken = chosen.length > 0 || openSlots < slots.limitOf(stage);
  if (isBlockedAsOne || !isTaken) return { waiting, starting: chosen, queued: [] };
  const others = new Set([...chosen, ...waiting.map(({ target }) => target)]);
  const queued = inState(stage, 'pending').filter((target) => !others.has(target));
  return { waiting, starting: chosen, queued };
});

function blockedAsOne(context: DecisionContext, stage: Stage) {
  const [first] = inState(stage, 'pending');
  // The order and the waves are ignored here: while no slot is free, the target waits for nodes in progress anyway.
  const gated = first && slots.gatedTarget(context, stage, first);
  return gated?.ofRollout === true && !gated.probe ? { waiting: [gated], chosen: [] } : undefined;
}

/**
 * Returns true if the failed targets of the stage keep its slots and exceed the failure budget, so that no slot gets
 * free before a failed target is tried again.
 */
export function isHeldByFailures(stage: Stage, { maxFailures }: RolloutPolicy): boolean {
  const kept = stage.failedHoldSlots === true ? inState(stage, 'failed').length : 0;
  return maxFailures > 0 && kept > maxFailures;
}
