/** Owns `refit pause` and `refit resume`: nothing new starts, and it goes on again. */

import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import { isFinal } from '../../engine/model/recorded.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { operatorOf } from '../operators.ts';
import { stateOf } from '../status/text.ts';
import type { InspectedPlan, Order } from './control.ts';
import { finishing, starting, titleOf } from './in-flight.ts';

export function pause({ snapshot, view }: InspectedPlan, now: number): Order {
  const title = titleOf(view);
  if (isFinal(snapshot.rollout))
    throw new RefitError('REFIT_ORDER', `${title} ${stateOf(view)}: nothing is left to pause`);
  const next = [finishing(view, now), 'Nothing new starts until `refit resume`.'];
  if (snapshot.controls.paused) return { said: [`${title} is paused already.`, ...next] };
  return { annotations: { [PAUSE_ANNOTATION]: rfc3339(now) }, said: [`${title} is paused.`, ...next] };
}

export function resume({ snapshot, policy, view }: InspectedPlan): Order {
  const title = titleOf(view);
  const { paused, abort } = snapshot.controls;
  if (abort !== undefined) {
    const message = `${title} was aborted (${abort}), which no resume takes back: ${operatorOf(view.dialect).takeBack}`;
    throw new RefitError('REFIT_ORDER', message);
  }
  const held = policy.paused
    ? [`UpgradePolicy ${policy.name} is paused too: nothing starts until spec.paused of it is false.`]
    : [];
  if (isFinal(snapshot.rollout))
    return { ...lifted(paused), said: [`${title} ${stateOf(view)}: nothing is left to start.`] };
  if (!paused) return { said: [`${title} is not paused.`, ...held, starting(view)] };
  return { ...lifted(paused), said: [`${title} goes on.`, ...held, starting(view)] };
}

function lifted(paused: boolean): Pick<Order, 'annotations'> {
  return paused ? { annotations: { [PAUSE_ANNOTATION]: null } } : {};
}
