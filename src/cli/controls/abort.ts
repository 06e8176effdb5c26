/** Implements `refit abort`: cancels signals of nodes that have not started; the others finish, then the plan ends. */
import { hostname } from 'node:os';
import { nodeActionsOf } from '../../engine/decide/choose-node-actions.ts';
import { evaluationsFor } from '../../engine/decide/evaluate-target.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { ABORT_ANNOTATION } from '../../engine/model/controls.ts';
import type { NodeAction } from '../../engine/model/decision.ts';
import { isFinal, isOwnedBy, type Target, targetsIn } from '../../engine/model/rollout.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { runnerOf } from '../plan-runners.ts';
import { isMoving } from '../status/sentences.ts';
import { stateOf, titleOf } from '../status/text.ts';
import { userName } from '../user-name.ts';
import { type Control, type ControlledPlan, inProgress } from './control.ts';

const MOST_NAMES = 8;

export function abort(reason = `by ${userName()}@${hostname()}`): Control {
  return (plan, now) => {
    const { snapshot, view } = plan;
    const title = titleOf(view);
    const { abort: before } = snapshot.controls;
    if (isFinal(snapshot.rollout)) {
      if (before !== undefined) return { said: [`${title} was already aborted (${before}) and has ended.`] };
      throw new RefitError('REFIT_CONTROL', `${title} ${stateOf(view)}: nothing is left to abort`);
    }
    const aborted = { ...snapshot, controls: { ...snapshot.controls, abort: before ?? reason } };
    const effects = effectsOf({ ...plan, snapshot: aborted }, now);
    if (before !== undefined) return { said: [`${title} is already being aborted (${before}).`, ...effects] };
    return { annotations: { [ABORT_ANNOTATION]: reason }, said: [`${title} is aborted: ${reason}.`, ...effects] };
  };
}

/** From the same node actions that the leader will run. */
function effectsOf({ snapshot, policy, view }: ControlledPlan, now: number): string[] {
  const nodeActions = nodeActionsOf(evaluationsFor(snapshot, policy, now));
  const cancelled = nodeActions.filter(({ kind }) => kind === 'cancel').map(({ target }) => target);
  const intended = targetsIn(snapshot.rollout, 'intended');
  const unsent = intended.filter((target) => factsOf(snapshot, target).observation.kind === 'none');
  const released = new Set([...cancelled, ...unsent].map(({ name }) => name));
  const stages = view.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.filter(({ name }) => !released.has(name)),
  }));
  const who = runnerOf(view.dialect).runsHere ? ['`refit kubeadm apply` does this: run it, if none runs.'] : [];
  const waits = stages.some(({ targets }) => targets.some(isMoving));
  return [
    ...namesLine('Signal cancelled', cancelled),
    ...namesLine('Uncordoned', ownCordons(snapshot, nodeActions)),
    inProgress({ ...view, stages }, now),
    `The plan ends as failed${waits ? ' when no node is in progress any more' : ''}.`,
    ...who,
  ];
}

/** Only Refit's own cordons, and only of nodes that go no further. */
function ownCordons({ rollout, facts }: ControlledPlan['snapshot'], nodeActions: readonly NodeAction[]): Target[] {
  return nodeActions
    .filter((nodeAction) => nodeAction.kind === 'cancel' || (nodeAction.kind === 'clean-up' && nodeAction.cordon))
    .map(({ target }) => target)
    .filter((target) => isOwnedBy(rollout, factsOf({ facts }, target).node?.cordonOwner));
}

function namesLine(what: string, targets: readonly Target[]): string[] {
  const names = targets.map(({ name }) => name);
  return names.length === 0 ? [] : [`${what}: ${listed(names, MOST_NAMES)}.`];
}
