/** Says why a target in progress failed. */
import { answerOf } from '../model/asked.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, RUNS_AGAIN } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';
import type { ObservedState } from './evaluation.ts';

/** Returns the reason why a target in progress failed, as the observation of the target shows it. */
export function failureReason(
  target: Target,
  { observation, drainDelegation }: TargetFacts,
  observed: ObservedState,
) {
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
  const step = observation.kind === 'working' ? ` at ${observation.step}` : '';
  return because('DeadlineExceeded', `${target.name} did not report within its deadline${step}`);
}
