/** Says why targets failed: in one turn, as the leader decides it, and afterwards, as far as it is known. */
import { factsOf } from '../gates/types.ts';
import { type FailureReasons, rememberedFailure, runNameOf } from '../model/failures.ts';
import type { Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { reasonAbout, withoutName } from '../reasons/about-target.ts';
import { recordedReason } from '../reasons/recorded.ts';
import type { Assessment } from './assess.ts';
import { FAILURES } from './budget.ts';
import { isAtRest } from './evaluate-target.ts';
import { failureReason } from './failure-reason.ts';

/** Returns the reasons of the targets that this turn lets fail. */
export function failuresDecided(assessment: Assessment): FailureReasons {
  const { snapshot, stage } = assessment;
  const targets = stage?.targets.filter((target) => !isAtRest(snapshot, target)) ?? [];
  const reasons = targets.flatMap((target): [string, Reason][] => {
    const evaluation = stage && assessment.of(stage, target);
    const isFailure = evaluation?.next !== undefined && FAILURES.includes(evaluation.next);
    return isFailure ? [[target.name, withoutName(target.name, evaluation.reason)]] : [];
  });
  return { run: runNameOf(snapshot.rollout), reasons: Object.fromEntries(reasons) };
}

/**
 * Returns why the target failed, in words without the name of the target; undefined if the reason is not known. Callers
 * ask only about targets that have failed, or whose failure the leader is about to record. The node itself knows the
 * reason best, unless the leader wrote there why it gave the target up. Otherwise the reason of the rollout counts if it
 * is about this target, and then the reason that was remembered when the target failed.
 */
export function failureOf(snapshot: Snapshot, target: Target): Reason | undefined {
  const facts = factsOf(snapshot, target);
  const { observation } = facts;
  const known = knownFailure(snapshot, target);
  if (observation.kind === 'failed') {
    const { message } = observation;
    const said = withoutName(target.name, { ...failureReason(target, facts, 'failed'), message });
    // A leader that gives a target up writes its reason into the object of the target, which has no room for the code.
    return recordedReason(known?.message === said.message ? known : said);
  }
  if (known === undefined || !FAILURES.includes(target.state)) return undefined;
  return recordedReason(known);
}

/**
 * Returns why the leader gave the target up, as a sentence that names the target; undefined if that is not known. `late`
 * is the reason of a target that takes too long now. It is used if the leader gave the target up for that.
 */
export function reasonToGiveUp(
  snapshot: Snapshot,
  target: Target,
  late: Reason,
): Reason | undefined {
  const { reason } = snapshot.rollout;
  if (reason?.about?.includes(target.name) === true) return reason;
  const known = knownFailure(snapshot, target);
  return known?.code === late.code ? late : known && reasonAbout(target.name, known);
}

/** Returns the reason of the rollout if it is about this target, or else the reason that is remembered. */
function knownFailure({ rollout, term }: Snapshot, target: Target): Reason | undefined {
  return (
    target.failure ??
    saidByRollout(rollout, target) ??
    rememberedFailure(term.failures, rollout, target.name)
  );
}

function saidByRollout({ reason }: Rollout, { name }: Target): Reason | undefined {
  return reason?.about?.includes(name) === true ? withoutName(name, reason) : undefined;
}
