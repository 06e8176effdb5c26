/** Chooses the targets that a reading names as the next ones to start. */
import { type Assessment, phaseOf } from '../assess/assess.ts';
import { isStopping } from '../assess/budget.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { factsOf } from '../gates/types.ts';
import type { Wait } from '../model/decision.ts';
import { isUnasked } from '../model/reasons.ts';
import { isFinal, type Rollout, type Stage, type Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { groupsOf } from '../schedule/order.ts';
import { limitOf } from '../schedule/slots.ts';
import { wavesAhead } from './stops-ahead.ts';
import { waveOf } from './target-reading.ts';

/**
 * Returns the names of the targets that start next, without those that people hold, and without those that another
 * controller has not chosen yet. All of them are in the first stage that has pending targets. `waits` are all waits of the assessment, and `upcoming` is the rollout as the controller would
 * record it next.
 */
export function nextTargets(
  assessment: Assessment,
  waits: readonly Wait[],
  upcoming: Rollout,
): string[] {
  const { snapshot, policy, now } = assessment;
  if (isFinal(upcoming) || isStopping({ ...snapshot, rollout: upcoming }, policy)) return [];
  const { rollout } = snapshot;
  const holding = waits.filter(({ ofStage, reason }) => ofStage !== true && !isUnasked(reason));
  const blocked = new Set(holding.map(({ target }) => target));
  const behind = new Set(
    holding.filter(({ reason }) => reason.code === 'EarlierNodes').map(({ target }) => target),
  );
  for (const stage of rollout.stages) {
    // A target to which the signal was sent has started already, even if this is not recorded yet.
    const all = stage.targets.filter((target) => phaseOf(assessment, stage, target) === 'pending');
    const pending = beforeStops(assessment, stage, all);
    // Only the first group with a target that may start is next, because later groups wait until it is done.
    const [free = []] = groupsOf({ snapshot, policy }, stage, pending)
      .map((group) =>
        group
          .filter((target) => !isTargetHeld({ snapshot, policy, now }, stage, target))
          .filter((target) => !isUnchosen(snapshot, target))
          // At the turn of a target whose Node has been deleted, nothing starts.
          .filter((target) => factsOf(snapshot, target).exists)
          .map(({ name }) => name),
      )
      .filter(({ length }) => length > 0);
    const ready = free.filter((name) => !blocked.has(name));
    // If a gate blocks all of these targets, the first targets of the list are still the next to start. A target that
    // waits for an earlier target is not.
    const first = free.filter((name) => !behind.has(name));
    if (all.length > 0) return (ready.length > 0 ? ready : first).slice(0, limitOf(stage));
  }
  return [];
}

/** Returns true if another controller chooses which target comes next, and has not chosen this one. */
function isUnchosen({ targets }: Snapshot, { key }: Target): boolean {
  const occupant = targets.occupantOf(key);
  return typeof occupant === 'object' && occupant.isUnchosen === true;
}

/**
 * Returns the pending targets without those of waves that must still settle or be approved, while an earlier wave is at
 * work. Once no earlier wave is at work, the targets of such a wave are the next ones, and they have a wait.
 */
function beforeStops(
  assessment: Assessment,
  stage: Stage,
  pending: readonly Target[],
): readonly Target[] {
  const ahead = new Set(wavesAhead(assessment, stage).map(({ wave }) => wave));
  if (stage.targets.every(({ state }) => state !== 'intended')) return pending;
  return pending.filter((target) => !ahead.has(waveOf(assessment, stage, target) ?? 0));
}
