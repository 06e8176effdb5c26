/** Implements `refit retry --skipped`: makes a plan upgrade all nodes that it has skipped. */
import { pinOf } from '../../engine/gates/pins.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { RETRY_ANNOTATION, withRetry } from '../../engine/model/controls.ts';
import { isUpgradedByLaterStage, targetsIn, withStages } from '../../engine/model/rollout.ts';
import { isHeld } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import { failing } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { titleOf } from '../status/text.ts';
import type { Control, ControlledPlan } from './control.ts';
import { momentOf, retriesOn } from './retried-targets.ts';
import { refuseIfAborted } from './retry.ts';

const MOST_NAMES = 8;

const takeUp: Control = (controlled, now) => {
  const { snapshot, view, policy } = controlled;
  const skipped = skippedOf(controlled);
  const targets = skipped.map(({ target }) => target);
  const due = targets.flatMap((target) => {
    const at = momentOf([target], snapshot);
    const before = snapshot.plan.controls.retries.get(target.name);
    return before !== undefined && before >= at ? [] : [{ name: target.name, at }];
  });
  const names = listed(
    targets.map(({ name }) => name),
    MOST_NAMES,
  );
  const held = targets.filter((target) => {
    const { hold } = factsOf(snapshot, target);
    return hold !== undefined && isHeld(hold, now);
  });
  const stillHeld = held
    .slice(0, MOST_NAMES)
    .map(({ name }) => `${name} is still held: it does not start before \`refit unhold ${name}\`.`);
  const stillPinned = skipped
    .flatMap(({ stage, target }) => pinOf(policy, stage, target, factsOf(snapshot, target)) ?? [])
    .slice(0, MOST_NAMES)
    .map(({ message }) => `${message}: it does not start before the pin is removed or changed.`);
  const still = [...stillHeld, ...stillPinned];
  if (due.length === 0)
    return {
      said: [`${names} already ${targets.length === 1 ? 'has' : 'have'} a retry.`, ...still],
    };
  const value = due.reduce<string | undefined>(
    (text, { name, at }) => withRetry(text, name, rfc3339(at)),
    retriesOn(controlled),
  );
  return {
    annotations: { [RETRY_ANNOTATION]: value ?? null },
    said: [
      `${names} of ${titleOf(view)} will be tried again.`,
      'A node starts when the nodes before it have started and its gates pass.',
      ...still,
    ],
  };
};

/**
 * The control that retries every skipped node of one plan. If the user does not name a plan, the command chooses a plan
 * with skipped nodes.
 */
export const retrySkipped: Control = Object.assign(
  (plan: ControlledPlan, now: number) => takeUp(plan, now),
  {
    isMeant: ({ snapshot }: Pick<ControlledPlan, 'snapshot'>) =>
      targetsIn(snapshot.rollout, 'skipped').length > 0,
  },
);

/** Returns the skipped targets that still exist. Throws REFIT_CONTROL if there is none, or if the plan cannot retry. */
function skippedOf(controlled: ControlledPlan) {
  refuseIfAborted(controlled);
  const { snapshot, view } = controlled;
  const refuse = failing('REFIT_CONTROL');
  const title = titleOf(view);
  const { advice } = view.texts;
  const skipped = withStages(snapshot.rollout)
    .filter(({ target }) => target.state === 'skipped')
    .filter(({ stage, target }) => !isUpgradedByLaterStage(snapshot.rollout, stage, target));
  if (skipped.length === 0) return refuse(`${title} has no skipped node`);
  if (advice.retry === undefined)
    return refuse(
      `refit retry cannot retry nodes of ${title}: fix the cause, then ${advice.again(view).clause}`,
    );
  const there = skipped.filter(({ target }) => factsOf(snapshot, target).exists);
  if (there.length > 0) return there;
  return refuse(
    `no skipped node of ${title} exists any more: ${listed(
      skipped.map(({ target }) => target.name),
      MOST_NAMES,
    )}`,
  );
}
