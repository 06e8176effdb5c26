/** Implements `refit pause` and `refit resume`. */
import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { activeStage, isFinal } from '../../engine/model/rollout.ts';
import { openSlots } from '../../engine/schedule/slots.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { runnerOf } from '../plan-runners.ts';
import { viewAt } from '../status/observe.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { type ControlledPlan, inProgress, type PlanChange } from './control.ts';

export function pause({ snapshot, view }: ControlledPlan, now: number): PlanChange {
  const title = titleOf(view);
  // One that goes on by itself is over only once it was aborted.
  const goesOn = runnerOf(view.dialect).corrected !== undefined && snapshot.controls.abort === undefined;
  if (isFinal(snapshot.rollout) && !goesOn)
    throw new RefitError('REFIT_CONTROL', `${title} ${stateOf(view)}: nothing is left to pause`);
  const next = [inProgress(view, now), 'No new node starts until `refit resume`.'];
  if (snapshot.controls.paused) return { said: [`${title} is already paused.`, ...next] };
  return { annotations: { [PAUSE_ANNOTATION]: rfc3339(now) }, said: [`${title} is paused.`, ...next] };
}

export function resume(plan: ControlledPlan, now: number): PlanChange {
  const { snapshot, policy, view } = plan;
  const title = titleOf(view);
  const { paused, abort } = snapshot.controls;
  if (abort !== undefined) {
    const message = `${title} was aborted (${abort}) and cannot be resumed; to start again: ${runnerOf(view.dialect).startOver}`;
    throw new RefitError('REFIT_CONTROL', message);
  }
  const change = paused ? { annotations: { [PAUSE_ANNOTATION]: null } } : {};
  if (isFinal(snapshot.rollout)) return { ...change, said: [`${title} ${stateOf(view)}: no node is left to start.`] };
  const resumed = { ...snapshot, controls: { ...snapshot.controls, paused: false } };
  const { next, waits } = viewAt({ ...plan, snapshot: resumed }, now);
  const stage = activeStage(snapshot.rollout);
  const isFull = stage !== undefined && openSlots({ snapshot, policy, now }, stage) === 0;
  const ends = waits.find(({ gate, ofStage }) => ofStage === true && (gate !== 'slots' || isFull))?.ends;
  const when = ends === undefined ? '.' : `, when ${ends}.`;
  const then = next.length === 0 ? 'No node is left to start.' : `Next: ${listed(next)}${when}`;
  return { ...change, said: [`${title} ${paused ? 'continues' : 'is not paused'}.`, then] };
}
