/** Implements `refit pause`, `refit resume` and `refit abort`. */
import { assess } from '../../engine/assess/assess.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION, pauseText } from '../../engine/model/controls.ts';
import type { NodeAction } from '../../engine/model/decision.ts';
import type { Reason } from '../../engine/model/reasons.ts';
import {
  activeStage,
  isFinal,
  isOwnedBy,
  type Target,
  targetsIn,
} from '../../engine/model/rollout.ts';
import { openSlots } from '../../engine/schedule/slots.ts';
import { nodeActionsOf } from '../../engine/turn/choose-node-actions.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { textIn } from '../../util/written-values.ts';
import { toDo } from '../advice/advice.ts';
import { shownAt } from '../status/observe.ts';
import { shownRefOf } from '../status/plan-names.ts';
import { heldLines, heldTargets, isMoving, missingLines } from '../status/sentences.ts';
import type { SessionParts } from '../status/status-session.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { nameOfUser } from '../user-name.ts';
import { type Control, type ControlledPlan, inProgress, type PlanChange } from './control.ts';
import { applyControl, type ControlFlags } from './control-command.ts';

/** Returns the control that pauses a plan. `reason` is stored in the plan and shown while it is paused. */
export function pauseBecause(reason: string | undefined): Control {
  return (plan, now) => pausing(plan, reason, now);
}

/** The control that pauses a plan without a reason. */
export const pause: Control = pauseBecause(undefined);

/** Returns the change that pauses the plan. Throws REFIT_CONTROL if the plan has ended or was aborted. */
function pausing(plan: ControlledPlan, given: string | undefined, now: number): PlanChange {
  const { snapshot, view } = plan;
  const title = titleOf(view);
  const { paused, abort, pauseReason, pausedSince = rfc3339(now) } = snapshot.plan.controls;
  const reason = textIn(given);
  const isNew = reason !== undefined && reason !== pauseReason;
  const isOver = isFinal(snapshot.rollout) && view.texts.advice.corrected === undefined;
  const state = abort === undefined ? stateOf(view) : `was aborted (${abort})`;
  if (abort !== undefined || isOver)
    throw new RefitError('REFIT_CONTROL', `${title} ${state}: nothing is left to pause`);
  const flag = plan.hasOthers === true ? ` --plan ${shownRefOf(plan)}` : '';
  const next = [inProgress(view, now), `No new node starts until \`refit resume${flag}\`.`];
  const why = (words: string | undefined): string => (words === undefined ? '' : `: ${words}`);
  if (paused && areProved(plan) && !isNew)
    return { said: [`${title} is already paused${why(pauseReason)}.`, ...next] };
  return {
    annotations: { [PAUSE_ANNOTATION]: pauseText(paused ? pausedSince : rfc3339(now), reason) },
    said: [`${title} is paused${why(reason)}.`, ...next],
  };
}

/**
 * Returns the change that resumes the plan. Throws REFIT_CONTROL if the plan was aborted, or if it has ended and nothing is left to resume.
 */
export function resume(plan: ControlledPlan, now: number): PlanChange {
  const { snapshot, policy, view } = plan;
  const title = titleOf(view);
  const { paused, abort } = snapshot.plan.controls;
  if (abort !== undefined) {
    const message = `${title} was aborted (${abort}) and cannot be resumed; to start again: ${view.texts.advice.startOver(view).clause}`;
    throw new RefitError('REFIT_CONTROL', message);
  }
  const isChange = paused || !areProved(plan);
  const change = isChange ? { annotations: { [PAUSE_ANNOTATION]: null } } : {};
  const advice = toDo(view);
  const none = advice.length > 0 ? 'no node starts' : 'no node is left to start';
  const isCorrectable = view.texts.advice.corrected !== undefined;
  if (isFinal(snapshot.rollout) && !isChange && !isCorrectable)
    throw new RefitError(
      'REFIT_CONTROL',
      `${title} ${stateOf(view)}: nothing is left to resume`,
      advice[0] === undefined ? {} : { hint: advice.join(' ') },
    );
  if (isFinal(snapshot.rollout))
    return { ...change, said: [`${title} ${stateOf(view)}: ${none}.`, ...advice] };
  const controls = { ...snapshot.plan.controls, paused: false };
  const rollout = { ...snapshot.rollout, unread: leftUnread(plan) };
  const resumed = { ...snapshot, rollout, plan: { ...snapshot.plan, controls } };
  const shown = shownAt({ ...plan, snapshot: resumed }, now);
  const { next, waits, stages } = shown;
  const stage = activeStage(snapshot.rollout);
  const isFull = stage !== undefined && openSlots({ snapshot, policy, now }, stage) === 0;
  const ends = waits.find(
    ({ gate, ofStage }) => ofStage === true && (gate !== 'slots' || isFull),
  )?.ends;
  const when = ends === undefined ? '.' : `, when ${ends}.`;
  const held = heldLines(heldTargets({ stages })).map((line) => `${line}.`);
  const missing = missingLines(shown).map((line) => `${line}.`);
  // If the plan is about to end, its reason says why no node starts, such as a node that was deleted.
  const isEnding = advice.length === 0 && shown.reason !== undefined;
  const noneNow = isEnding ? `Now no node starts: ${shown.reason}.` : `Now ${none}.`;
  const kept = [...held, ...missing];
  const nobody = [...(kept.length === 0 ? [noneNow] : kept), ...advice];
  const then = next.length === 0 ? nobody : [`Next: ${listed(next)}${when}`];
  return { ...change, said: [`${title} ${isChange ? 'continues' : 'is not paused'}.`, ...then] };
}

/**
 * Returns true unless something other than Refit has changed the controls. The next write of a control removes what
 * somebody added, and counts instead of what somebody removed.
 */
function areProved({ snapshot }: ControlledPlan): boolean {
  return snapshot.rollout.unread?.code !== 'ControlsUnproved';
}

/** Returns why the record cannot be read after a control was written; undefined if it can be read. */
function leftUnread(plan: ControlledPlan): Reason | undefined {
  return areProved(plan) ? plan.snapshot.rollout.unread : undefined;
}

const MOST_NAMES = 8;

export interface AbortFlags extends ControlFlags {
  readonly reason?: string;
}

/** Aborts the plan that the user named, and prints what happens next. */
export async function carryOutAbort(flags: AbortFlags, parts: SessionParts): Promise<void> {
  const given = flags.reason?.trim() ?? '';
  const reason = given === '' ? `by ${await nameOfUser(flags, parts)}` : given;
  await applyControl(abort(reason), flags, parts);
}

/** Returns the control that aborts a plan. `reason` is stored in the plan and shown as the reason of its end. */
export function abort(reason: string): Control {
  return (plan, now) => {
    const { snapshot, view } = plan;
    const title = titleOf(view);
    const { abort: before } = snapshot.plan.controls;
    if (isFinal(snapshot.rollout)) {
      if (before !== undefined)
        return { said: [`${title} was already aborted (${before}) and has ended.`] };
      throw new RefitError('REFIT_CONTROL', `${title} ${stateOf(view)}: nothing is left to abort`);
    }
    const controls = { ...snapshot.plan.controls, abort: before ?? reason };
    const aborted = { ...snapshot, plan: { ...snapshot.plan, controls } };
    const effects = effectsOf({ ...plan, snapshot: aborted }, now);
    if (before !== undefined && areProved(plan))
      return { said: [`${title} is already being aborted (${before}).`, ...effects] };
    return {
      annotations: { [ABORT_ANNOTATION]: reason },
      said: [`${title} is aborted: ${reason}.`, ...effects],
    };
  };
}

/** Returns sentences about what the abort changes. They are made from the node actions that the leader would run now. */
function effectsOf({ snapshot, policy, view }: ControlledPlan, now: number): string[] {
  const nodeActions = nodeActionsOf(assess(snapshot, policy, now));
  const cancelled = nodeActions.filter(({ kind }) => kind === 'cancel').map(({ target }) => target);
  // Only agents have a signal that can be cancelled. Elsewhere, the leader deletes a Job or stops its own work.
  const hasAgent = (target: Target): boolean => factsOf(snapshot, target).agent !== undefined;
  const ofAgents = cancelled.filter(hasAgent);
  const others = cancelled.filter((target) => !hasAgent(target));
  const intended = targetsIn(snapshot.rollout, 'intended');
  const unsent = intended.filter((target) => factsOf(snapshot, target).observation.kind === 'none');
  const released = new Set([...cancelled, ...unsent].map(({ name }) => name));
  const stages = view.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.filter(({ name }) => !released.has(name)),
  }));
  const { name, runsHere } = view.texts.advice;
  const who = runsHere ? [`${name} does this: start it if it is not running.`] : [];
  const waits = stages.some(({ targets }) => targets.some(isMoving));
  return [
    ...namesLine('The leader cancels the signal of', ofAgents),
    ...namesLine('The leader stops the work on', others),
    ...namesLine('The leader uncordons', ownCordons(snapshot, nodeActions)),
    inProgress({ ...view, stages }, now),
    `The plan ends as failed${waits ? ' when no node is in progress any more' : ''}.`,
    ...who,
  ];
}

/** Returns the targets that the leader will uncordon: their upgrade is cancelled, and Refit cordoned them. */
function ownCordons(
  { rollout, targets }: ControlledPlan['snapshot'],
  nodeActions: readonly NodeAction[],
): Target[] {
  return nodeActions
    .filter(
      (nodeAction) =>
        nodeAction.kind === 'cancel' || (nodeAction.kind === 'clean-up' && nodeAction.cordon),
    )
    .map(({ target }) => target)
    .filter((target) => isOwnedBy(rollout, factsOf({ targets }, target).node?.cordonOwner));
}

function namesLine(what: string, targets: readonly Target[]): string[] {
  const names = targets.map(({ name }) => name);
  return names.length === 0 ? [] : [`${what}: ${listed(names, MOST_NAMES)}.`];
}
