/** Implements `refit pause` and `refit resume`. */
import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { activeStage, isFinal } from '../../engine/model/rollout.ts';
import { freeWithin } from '../../engine/schedule/slots.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { runnerOf } from '../plan-runners.ts';
import { type Inspection, viewAt } from '../status/observe.ts';
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
  const { snapshot, view } = plan;
  const title = titleOf(view);
  const { paused, abort } = snapshot.controls;
  if (abort !== undefined) {
    const message = `${title} was aborted (${abort}) and cannot be resumed; to start again: ${runnerOf(view.dialect).startOver}`;
    throw new RefitError('REFIT_CONTROL', message);
  }
  const change = paused ? { annotations: { [PAUSE_ANNOTATION]: null } } : {};
  if (isFinal(snapshot.rollout)) return { ...change, said: [`${title} ${stateOf(view)}: no node is left to start.`] };
  const resumed = { ...snapshot, controls: { ...snapshot.controls, paused: false } };
  const next = nextLine({ ...plan, snapshot: resumed }, now);
  return { ...change, said: [`${title} ${paused ? 'continues' : 'is not paused'}.`, next] };
}

/** With what holds all of them back. */
function nextLine(plan: Inspection, now: number): string {
  const { next, waits } = viewAt(plan, now);
  if (next.length === 0) return 'No node is left to start.';
  const stage = activeStage(plan.snapshot.rollout);
  const isFull = stage !== undefined && freeWithin(stage, plan.policy) === 0;
  const holding = waits.find(({ gate, ofStage }) => ofStage === true && (gate !== 'slots' || isFull));
  return `Next: ${listed(next)}${holding?.ends === undefined ? '' : `, when ${holding.ends}`}.`;
}
