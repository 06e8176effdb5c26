/** Starts an aborted plan again, for `refit retry` with the name of the plan. */
import { factsOf } from '../../engine/gates/types.ts';
import { ABORT_ANNOTATION, RETRY_ANNOTATION, withRetry } from '../../engine/model/controls.ts';
import { isFinal, targetsIn } from '../../engine/model/rollout.ts';
import { rfc3339 } from '../../util/clock.ts';
import { failing } from '../../util/errors.ts';
import { listed } from '../../util/phrases.ts';
import { titleOf } from '../status/text.ts';
import type { ControlledPlan, PlanChange } from './control.ts';
import { momentOf, retriesOn } from './retried-targets.ts';

const MOST_NAMES = 8;

/**
 * Returns the change that starts the aborted plan again and retries its failed targets; undefined if the plan was not
 * aborted, or if its dialect has another way to start it again. Throws REFIT_CONTROL if the plan has not ended yet.
 */
export function startAgain(controlled: ControlledPlan): PlanChange | undefined {
  const { snapshot, view } = controlled;
  const { abort } = snapshot.plan.controls;
  if (abort === undefined || !view.texts.advice.retriesAborted) return undefined;
  const title = titleOf(view);
  if (!isFinal(snapshot.rollout))
    return failing('REFIT_CONTROL')(
      `${title} is being aborted and has not ended yet: run this again when no node of it is in progress`,
    );
  const failed = targetsIn(snapshot.rollout, 'failed').filter(
    (target) => factsOf(snapshot, target).exists,
  );
  const retries = failed.reduce<string | undefined>(
    (text, target) => withRetry(text, target.name, rfc3339(momentOf([target], snapshot))),
    retriesOn(controlled),
  );
  const names = listed(
    failed.map(({ name }) => name),
    MOST_NAMES,
  );
  return {
    annotations: { [ABORT_ANNOTATION]: null, [RETRY_ANNOTATION]: retries ?? null },
    said: [
      `${title} will start again.`,
      ...(failed.length === 0 ? [] : [`${names} will be tried again.`]),
    ],
  };
}
