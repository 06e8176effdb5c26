/** Says why a target in progress failed. */
import { answerOf } from '../model/asked.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, type Reason, RUNS_AGAIN } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';
import type { ObservedState, TargetEvaluation } from './evaluation.ts';

/** Returns the reason why a target in progress failed, as the observation of the target shows it. */
export function failureReason(
  target: Target,
  { observation, drainDelegation }: TargetFacts,
  observed: ObservedState,
): Reason {
  if (observed === 'gone')
    return because('TargetGone', `${target.name} disappeared during its attempt`);
  if (observation.kind === 'failed') {
    const again = observation.report?.rolledBack === true ? ` (${RUNS_AGAIN})` : '';
    const refused = observation.refused === true ? 'TargetRefused' : 'TargetFailed';
    const code = observation.late === 'drain' ? 'DrainTooLong' : refused;
    return because(code, `${target.name}: ${observation.message}${again}`);
  }
  if (
    observation.kind === 'working' &&
    observation.part === 'drain' &&
    answerOf(drainDelegation) === false
  )
    return because(
      'DrainTooLong',
      `${target.name}, which drains itself, was not drained within its deadline`,
    );
  const late = `${target.name} did not report within its deadline`;
  if (observation.kind !== 'working') return because('DeadlineExceeded', late);
  const { step, stalled } = observation;
  return because('DeadlineExceeded', withCause(`${late} at ${step}`, stalled));
}

/**
 * Returns the reason of a target that took too long. A target that waited for the leader took too long because of what
 * the leader waited for, such as a component of the control plane, a hook, or a PodDisruptionBudget. So the reason says
 * that, and does not blame the node. `awaited` is what `awaitedByTarget` returns for the target.
 */
export function lateReason(
  target: Target,
  facts: TargetFacts,
  awaited: TargetEvaluation | undefined,
): Reason {
  const { observation } = facts;
  if (awaited === undefined || observation.kind !== 'working')
    return failureReason(target, facts, 'late');
  const { effect, gate, probe, reason } = awaited;
  if (effect === 'fail') return reason;
  // Without a gate, the leader was about to act. With a probe, nobody knows yet whether the gate passes.
  const cause = gate === undefined || probe !== undefined ? undefined : reason.message;
  const late = `${target.name} was not done within its deadline, at ${observation.step}`;
  if (observation.waitsFor === 'drain' || cause === undefined)
    return because('DeadlineExceeded', withCause(late, cause));
  // The work on the node is done, so the failure must not look as if the node alone was too slow.
  return because(
    'UncordonTooLong',
    withCause(`${target.name} was not uncordoned within its deadline`, cause),
  );
}

function withCause(sentence: string, cause: string | undefined): string {
  return cause === undefined ? sentence : `${sentence}: ${cause}`;
}
