/** Owns `refit abort`: what can be taken back is, what cannot be finishes, and the plan ends. */
import { isOwnedBy } from '../../engine/cordons.ts';
import { errandsOf } from '../../engine/errands.ts';
import { factsOf } from '../../engine/gate-input.ts';
import { type Errand, isFinal, type Target } from '../../engine/model.ts';
import { ABORT_ANNOTATION } from '../../engine/orders.ts';
import { RefitError } from '../../util/errors.ts';
import { listed } from '../phrases.ts';
import { isMoving } from '../status/stage-lines.ts';
import { stateOf } from '../status/text.ts';
import { finishing, titleOf } from './in-flight.ts';
import type { Decide, Order, Seen } from './order.ts';

const MOST_NAMES = 8;

export function abort(reason: string): Decide {
  return (seen, now) => {
    const { snapshot, view } = seen;
    const title = titleOf(view);
    const { abort: before } = snapshot.orders;
    if (isFinal(snapshot.campaign)) {
      if (before !== undefined) return { said: [`${title} was aborted already (${before}), and is over.`] };
      throw new RefitError('REFIT_ORDER', `${title} ${stateOf(view)}: nothing is left to abort`);
    }
    const ordered = { ...snapshot, orders: { ...snapshot.orders, abort: before ?? reason } };
    const said = whatFollows({ ...seen, snapshot: ordered }, now);
    if (before !== undefined) return { said: [`${title} is being aborted already (${before}).`, ...said] };
    return { annotations: { [ABORT_ANNOTATION]: reason }, said: [`${title} is aborted: ${reason}.`, ...said] };
  };
}

/** By the very errands that the leader will run. */
function whatFollows({ snapshot, policy, view }: Seen, now: number): string[] {
  const errands = errandsOf(snapshot, policy, now);
  const withdrawn = errands.filter(({ kind }) => kind === 'withdraw').map(({ target }) => target);
  const unsent = snapshot.campaign.stages
    .flatMap(({ targets }) => targets)
    .filter((target) => target.state === 'intended' && factsOf(snapshot, target).observation.kind === 'none');
  const taken = new Set([...withdrawn, ...unsent].map(({ name }) => name));
  const stages = view.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.filter(({ name }) => !taken.has(name)),
  }));
  return [
    ...told('Taken back: the signal of', withdrawn),
    ...told('Lifted: the cordon of', cordoned(snapshot, errands)),
    finishing({ ...view, stages }, now),
    stages.some(({ targets }) => targets.some(isMoving))
      ? 'The plan ends as failed once nothing is under way any more.'
      : 'The plan ends as failed.',
  ];
}

/** Only our own cordons, and only of those that go no further. */
function cordoned({ campaign, facts }: Seen['snapshot'], errands: readonly Errand[]): Target[] {
  return errands
    .filter((errand) => errand.kind === 'withdraw' || (errand.kind === 'tidy' && errand.cordon))
    .map(({ target }) => target)
    .filter((target) => isOwnedBy(campaign, factsOf({ facts }, target).node?.cordonOwner));
}

function told(what: string, targets: readonly Target[]): Order['said'] {
  const names = targets.map(({ name }) => name);
  return names.length === 0 ? [] : [`${what} ${listed(names, MOST_NAMES)}.`];
}
