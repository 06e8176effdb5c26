/** Owns `refit retry`: one failed node goes again, and the plan with it. */

import { isOutdone } from '../../engine/decide/retry.ts';
import { factsOf } from '../../engine/gates/context.ts';
import { RETRY_ANNOTATION, withRetry } from '../../engine/model/controls.ts';
import type { Snapshot } from '../../engine/model/observed.ts';
import type { Stage, Target } from '../../engine/model/recorded.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { operatorOf } from '../operators.ts';
import type { Decide, InspectedPlan } from './control.ts';
import { titleOf } from './in-flight.ts';

export function retry(name: string): Decide {
  return (seen) => {
    const { plan, snapshot, view } = seen;
    const failed = failedOf(name, seen);
    const at = momentOf(failed, snapshot);
    const said = whatFollows(name, seen);
    const before = snapshot.controls.retries.get(name);
    if (before !== undefined && before >= at) return { said: [`${name} is to be tried again already.`, ...said] };
    const text = withRetry(plan.metadata.annotations?.[RETRY_ANNOTATION], name, rfc3339(at));
    return {
      annotations: { [RETRY_ANNOTATION]: text },
      said: [`${name} of ${titleOf(view)} is tried again.`, ...said],
    };
  };
}

function failedOf(name: string, { dialect, plan, snapshot, view }: InspectedPlan): readonly [Target, ...Target[]] {
  const refuse = (why: string): never => {
    throw new RefitError('REFIT_ORDER', why);
  };
  const { again, takeBack } = operatorOf(dialect.name);
  const title = titleOf(view);
  if (snapshot.controls.abort !== undefined)
    return refuse(`${title} was aborted, so no node of it goes on: ${takeBack}`);
  const found = snapshot.rollout.stages.flatMap((stage) =>
    stage.targets.filter((target) => target.name === name).map((target) => ({ stage, target })),
  );
  if (found.length === 0) return refuse(`${title} has no ${name} among its targets`);
  const failed = found.filter(({ target }) => target.state === 'failed');
  if (again && failed.length > 0) {
    return refuse(`no order lets ${name} of ${title} go again: mend the cause, then ${again(name, plan.metadata)}`);
  }
  const open = failed.filter(({ stage, target }) => !isOutdone(snapshot.rollout, stage, target));
  const [first, ...others] = open.map(({ target }) => target);
  if (first && !factsOf(snapshot, first).exists) {
    return refuse(`${name} is gone: there is no such node; order it once ${name} is back`);
  }
  if (first) return [first, ...others];
  if (failed.length > 0) return refuse(`a later command of ${title} has brought ${name} further since it failed`);
  return refuse(`${name} of ${title} has not failed: it is ${found.map((each) => placeOf(each, view)).join(', ')}`);
}

/** One that failed by its own word counts once the leader has recorded it. */
function placeOf({ stage, target }: { stage: Stage; target: Target }, { stages }: InspectedPlan['view']): string {
  const seen = stages
    .filter(({ command, role }) => command === stage.command && role === stage.role)
    .flatMap(({ targets }) => targets)
    .find(({ name }) => name === target.name);
  if (seen?.phase === 'failed') return 'about to be recorded as failed, ask again then';
  return seen?.step === undefined ? (seen?.phase ?? target.state) : `at ${seen.step}`;
}

/**
 * By the leader's clock, whatever ours says: the moment at which the failure was recorded, or that of its attempt where
 * clocks disagree. What fails later is another failure.
 */
function momentOf(failed: readonly [Target, ...Target[]], snapshot: Snapshot): number {
  const moments = failed.flatMap((target) => {
    const { observation } = factsOf(snapshot, target);
    return [target.since, ...(observation.kind === 'failed' ? [observation.attempt] : [])].map((text) =>
      Date.parse(text),
    );
  });
  return Math.max(...moments.filter((moment) => !Number.isNaN(moment)));
}

function whatFollows(name: string, { snapshot, view }: InspectedPlan): string[] {
  const targets = snapshot.rollout.stages.flatMap((stage) => stage.targets);
  const isAtWork = targets.some((target) => {
    const { kind } = factsOf(snapshot, target).observation;
    return target.name === name && target.state === 'failed' && (kind === 'sent' || kind === 'working');
  });
  const others = targets.filter((target) => target.state === 'failed' && target.name !== name);
  return [
    isAtWork
      ? 'Its agent is still at work: it goes again once that has come to its end.'
      : 'It waits for its turn and its gates like any other.',
    ...(others.length > 0 ? [`Still failed: ${others.map((each) => each.name).join(', ')}.`] : []),
    ...(view.paused === undefined ? [] : ['The plan is paused: nothing starts until that is taken back.']),
  ];
}
