/** Implements `refit retry`: tries one failed node or the failed hooks of a plan again, and continues the plan. */
import { isUnsettled } from '../../engine/assess/budget.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { RETRY_ANNOTATION, withRetry } from '../../engine/model/controls.ts';
import {
  isUpgradedByLaterStage,
  type Stage,
  type Target,
  targetsIn,
  withStages,
} from '../../engine/model/rollout.ts';
import { rfc3339 } from '../../util/clock.ts';
import { failing } from '../../util/errors.ts';
import type { Inspection } from '../status/observe.ts';
import { isNamed } from '../status/plan-names.ts';
import { titleOf } from '../status/text.ts';
import type { Control, ControlledPlan } from './control.ts';
import { momentOf, retriesOn } from './retried-targets.ts';
import { isPlanWithFailedHook, retryPlanHooks } from './retry-plan-hooks.ts';
import { startAgain } from './start-again.ts';

export function retry(name: string): Control {
  const hasFailed = ({ snapshot }: Inspection): boolean =>
    targetsIn(snapshot.rollout, 'failed').some((target) => target.name === name);
  const isAbout: Control['isAbout'] = (plan) =>
    isNamed(plan, name) ||
    withStages(plan.snapshot.rollout).some(({ target }) => target.name === name);
  const isMeant: Control['isMeant'] = (plan) => hasFailed(plan) || isPlanWithFailedHook(plan, name);
  const control: Control = (controlled, now) => {
    const { snapshot, view } = controlled;
    if (!hasFailed(controlled) && isNamed(controlled, name)) {
      const change = startAgain(controlled) ?? retryPlanHooks(controlled, now);
      if (change) return change;
    }
    const at = momentOf(failedOf(name, controlled), snapshot);
    const said = effectsOf(name, controlled);
    const before = snapshot.plan.controls.retries.get(name);
    if (before !== undefined && before >= at)
      return { said: [`${name} already has a retry.`, ...said] };
    const annotations = {
      [RETRY_ANNOTATION]: withRetry(retriesOn(controlled), name, rfc3339(at)),
    };
    if (isGone(name, controlled))
      return {
        annotations,
        said: [`There is no node ${name} any more: ${titleOf(view)} goes on without it.`],
      };
    return { annotations, said: [`${name} of ${titleOf(view)} will be tried again.`, ...said] };
  };
  return Object.assign(control, { isMeant, isAbout });
}

/** Throws REFIT_CONTROL if the plan was aborted, because nothing can be retried in an aborted plan. */
export function refuseIfAborted({ snapshot, view }: ControlledPlan): void {
  if (snapshot.plan.controls.abort === undefined) return;
  failing('REFIT_CONTROL')(
    `${titleOf(view)} was aborted, so no node of it can be retried; to start again: ${view.texts.advice.startOver(view).clause}`,
  );
}

function failedOf(name: string, controlled: ControlledPlan): readonly [Target, ...Target[]] {
  const refuse = failing('REFIT_CONTROL');
  refuseIfAborted(controlled);
  const { snapshot, view } = controlled;
  const { advice } = view.texts;
  const title = titleOf(view);
  const found = withStages(snapshot.rollout).filter(({ target }) => target.name === name);
  if (found.length === 0 && isNamed(controlled, name))
    return refuse(
      [
        `${name} is a plan, and its policy has no hook for the whole plan that could run again`,
        ...(advice.retry === undefined
          ? []
          : [`for a failed node: refit retry NODE --plan ${name}`]),
      ].join('; '),
    );
  if (found.length === 0) return refuse(`${name} is not a target of ${title}`);
  const failed = found.filter(({ target }) => target.state === 'failed');
  if (advice.retry === undefined && failed.length > 0)
    return refuse(
      `refit retry cannot retry ${name} of ${title}: fix the cause, then ${advice.again(view).clause}`,
    );
  const open = failed.filter(
    ({ stage, target }) => !isUpgradedByLaterStage(snapshot.rollout, stage, target),
  );
  const [first, ...others] = open.map(({ target }) => target);
  if (first && !factsOf(snapshot, first).exists && !advice.retriesGone)
    return refuse(`there is no node ${name}; retry it when it is back`);
  if (first) return [first, ...others];
  if (failed.length > 0)
    return refuse(`a later command of ${title} has brought ${name} to its version since it failed`);
  // If the roll-back of the node did not work, a retry is refused: the node may still restart, so it
  // must keep its slot, and no other node may restart at the same time.
  const unsettled = `${name} of ${title} failed, and its roll-back did not work: its service may still restart, so the node keeps its slot. Fix the node. Retry the node when it is not Ready or when its deadline has passed`;
  if (found.some(({ target }) => isUnsettled(snapshot, target))) return refuse(unsettled);
  const places = found.map((each) => placeOf(each, view));
  if (places.includes('failed'))
    return refuse(
      `${name} of ${title} failed, but the leader has not recorded it yet: run this again in a few seconds`,
    );
  if (places.includes('unsupported'))
    return refuse(
      `${name} of ${title} was refused, and would be refused again: correct the plan (see: refit why ${name})`,
    );
  return refuse(`${name} of ${title} has not failed: it is ${places.join(', ')}`);
}

/** Returns the phase of a target as one word. For a target in progress, returns `at <step>`. */
function placeOf(
  { stage, target }: { stage: Stage; target: Target },
  { stages }: ControlledPlan['view'],
): string {
  const shown = stages
    .filter(({ command, role }) => command === stage.command && role === stage.role)
    .flatMap(({ targets }) => targets)
    .find(({ name }) => name === target.name);
  const { phase = target.state, step } = shown ?? {};
  return step === undefined || phase === 'failed' ? phase : `at ${step}`;
}

/** Returns true if the Node of the failed target does not exist. */
function isGone(name: string, { snapshot }: ControlledPlan): boolean {
  return targetsIn(snapshot.rollout, 'failed').some(
    (target) => target.name === name && !factsOf(snapshot, target).exists,
  );
}

function effectsOf(name: string, { snapshot, view }: ControlledPlan): string[] {
  const failed = targetsIn(snapshot.rollout, 'failed');
  const isAtWork = failed.some((target) => {
    const { kind } = factsOf(snapshot, target).observation;
    return target.name === name && (kind === 'sent' || kind === 'working');
  });
  const others = failed.filter((target) => target.name !== name);
  const startsNone = snapshot.rollout.stages.every(({ maxInFlight }) => maxInFlight === 0);
  return [
    isAtWork
      ? 'Its agent is still at work: the retry starts when the agent has finished.'
      : 'It starts when the nodes before it have started, its gates pass and the failure budget allows it.',
    ...(startsNone ? ['The plan lets no node start: its concurrency is 0.'] : []),
    ...(others.length > 0 ? [`Still failed: ${others.map((each) => each.name).join(', ')}.`] : []),
    ...(view.paused === undefined
      ? []
      : ['The plan is paused: no node starts until it is resumed.']),
  ];
}
