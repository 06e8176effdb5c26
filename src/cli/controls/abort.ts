/** Owns `refit abort`: what can be taken back is, what cannot be finishes, and the plan ends. */

import { nodeActionsOf } from '../../engine/decide/node-actions.ts';
import { factsOf } from '../../engine/gates/context.ts';
import { ABORT_ANNOTATION } from '../../engine/model/controls.ts';
import { isOwnedBy } from '../../engine/model/cordon-owners.ts';
import { type NodeAction } from '../../engine/model/decided.ts';
import { isFinal, type Target } from '../../engine/model/recorded.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../phrases.ts';
import { isMoving } from '../status/stage-lines.ts';
import { stateOf } from '../status/text.ts';
import type { Decide, InspectedPlan, Order } from './control.ts';
import { finishing, titleOf } from './in-flight.ts';

const MOST_NAMES = 8;

export function abort(reason: string): Decide {
  return (seen, now) => {
    const { snapshot, view } = seen;
    const title = titleOf(view);
    const { abort: before } = snapshot.controls;
    if (isFinal(snapshot.rollout)) {
      if (before !== undefined) return { said: [`${title} was aborted already (${before}), and is over.`] };
      throw new RefitError('REFIT_ORDER', `${title} ${stateOf(view)}: nothing is left to abort`);
    }
    const ordered = { ...snapshot, controls: { ...snapshot.controls, abort: before ?? reason } };
    const said = whatFollows({ ...seen, snapshot: ordered }, now);
    if (before !== undefined) return { said: [`${title} is being aborted already (${before}).`, ...said] };
    return { annotations: { [ABORT_ANNOTATION]: reason }, said: [`${title} is aborted: ${reason}.`, ...said] };
  };
}

/** By the very node actions that the leader will run. */
function whatFollows({ snapshot, policy, view }: InspectedPlan, now: number): string[] {
  const nodeActions = nodeActionsOf(snapshot, policy, now);
  const cancelled = nodeActions.filter(({ kind }) => kind === 'cancel').map(({ target }) => target);
  const unsent = snapshot.rollout.stages
    .flatMap(({ targets }) => targets)
    .filter((target) => target.state === 'intended' && factsOf(snapshot, target).observation.kind === 'none');
  const taken = new Set([...cancelled, ...unsent].map(({ name }) => name));
  const stages = view.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.filter(({ name }) => !taken.has(name)),
  }));
  return [
    ...told('Taken back: the signal of', cancelled),
    ...told('Lifted: the cordon of', cordoned(snapshot, nodeActions)),
    finishing({ ...view, stages }, now),
    stages.some(({ targets }) => targets.some(isMoving))
      ? 'The plan ends as failed once nothing is under way any more.'
      : 'The plan ends as failed.',
  ];
}

/** Only our own cordons, and only of those that go no further. */
function cordoned({ rollout, facts }: InspectedPlan['snapshot'], nodeActions: readonly NodeAction[]): Target[] {
  return nodeActions
    .filter((nodeAction) => nodeAction.kind === 'cancel' || (nodeAction.kind === 'clean-up' && nodeAction.cordon))
    .map(({ target }) => target)
    .filter((target) => isOwnedBy(rollout, factsOf({ facts }, target).node?.cordonOwner));
}

function told(what: string, targets: readonly Target[]): Order['said'] {
  const names = targets.map(({ name }) => name);
  return names.length === 0 ? [] : [`${what} ${listed(names, MOST_NAMES)}.`];
}
