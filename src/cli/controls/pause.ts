/** Implements `refit pause` and `refit resume`. */
import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { runnerOf } from '../plan-runners.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { type ControlledPlan, inProgress, nextToStart, type PlanChange } from './control.ts';

export function pause({ snapshot, view }: ControlledPlan, now: number): PlanChange {
  const title = titleOf(view);
  // One that goes on by itself is never over.
  if (isFinal(snapshot.rollout) && runnerOf(view.dialect).corrected === undefined)
    throw new RefitError('REFIT_CONTROL', `${title} ${stateOf(view)}: nothing is left to pause`);
  const next = [inProgress(view, now), 'No new node starts until `refit resume`.'];
  if (snapshot.controls.paused) return { said: [`${title} is already paused.`, ...next] };
  return { annotations: { [PAUSE_ANNOTATION]: rfc3339(now) }, said: [`${title} is paused.`, ...next] };
}

export function resume({ snapshot, policy, view }: ControlledPlan): PlanChange {
  const title = titleOf(view);
  const { paused, abort } = snapshot.controls;
  if (abort !== undefined) {
    const message = `${title} was aborted (${abort}) and cannot be resumed; to start again: ${runnerOf(view.dialect).startOver}`;
    throw new RefitError('REFIT_CONTROL', message);
  }
  const change = paused ? { annotations: { [PAUSE_ANNOTATION]: null } } : {};
  if (isFinal(snapshot.rollout)) return { ...change, said: [`${title} ${stateOf(view)}: no node is left to start.`] };
  const held = policy.paused
    ? [`UpgradePolicy ${policy.name} is paused too: no node starts until its spec.paused is false.`]
    : [];
  return { ...change, said: [`${title} ${paused ? 'continues' : 'is not paused'}.`, ...held, nextToStart(view)] };
}
