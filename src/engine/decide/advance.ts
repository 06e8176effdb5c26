/** Advances a rollout by one move: follow the nodes' reports, end it, or fill free slots. */
import { rfc3339 } from '../../util/clock.ts';
import { type DecisionContext, factsOf } from '../gates/context.ts';
import { abortReason } from '../model/controls.ts';
import type { Snapshot } from '../model/observed.ts';
import { because, isUnasked, type Reason } from '../model/reasons.ts';
import type { RecordedState, Rollout, Stage, Target } from '../model/recorded.ts';
import { isFinal } from '../model/recorded.ts';
import { activeStage, targetsIn, withTargets } from '../model/stages.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { type Choice, chooseTargets } from '../schedule/candidates.ts';
import { failedInFlightIn } from '../schedule/failed-in-flight.ts';
import { freeSlots } from '../schedule/slots.ts';
import { admit } from './admission.ts';
import { type Evaluations, refusedState } from './evaluate-target.ts';
import { isSupersededByRetry, momentOf, withRetries } from './retry.ts';

const FAILURES: readonly RecordedState[] = ['failed', 'missing', 'unsupported'];

/** The rollout to record next; the same object if nothing changes. */
export function advance(evaluations: Evaluations): Rollout {
  const { snapshot, policy, now } = evaluations;
  if (snapshot.rollout.unread) return snapshot.rollout;
  const rollout = withRetries(snapshot, now);
  if (rollout !== snapshot.rollout || isFinal(rollout)) return rollout;
  if (rollout.phase === 'new') return admit(evaluations);
  const stage = activeStage(rollout);
  const followed = stage ? follow(evaluations, stage) : rollout;
  if (followed !== rollout) return followed;
  return conclude(snapshot, policy) ?? (stage ? start(evaluations, stage) : rollout);
}

/** True if nothing new may start: the rollout is aborted, its failure budget is used up, or the plan is now invalid. */
export function isStopping({ rollout, controls }: Snapshot, policy: RolloutPolicy): boolean {
  return controls.abort !== undefined || isOverBudget(rollout, policy) || rollout.problems.length > 0;
}

/** The choice that `start` acts on and that `refit status` explains. */
export function choose(context: DecisionContext, stage: Stage): Choice {
  const { snapshot, policy, now } = context;
  if (isStopping(snapshot, policy)) return { chosen: [], waiting: [], stopped: [] };
  const candidates = stage.targets.filter(({ state }) => state === 'pending');
  const slots = Math.max(0, freeSlots(stage) - failedInFlightIn(snapshot, now).length);
  return chooseTargets(context, stage, candidates, slots);
}

function follow(evaluations: Evaluations, stage: Stage): Rollout {
  const { snapshot, policy, now } = evaluations;
  const { rollout } = snapshot;
  const moved: Target[] = [];
  let { reason } = rollout;
  for (const target of stage.targets) {
    const step = evaluations.of(stage, target);
    if (!step.next) continue;
    moved.push({ ...target, state: step.next, since: sinceOf(snapshot, target, step.next, now) });
    // A reason that stops the rollout replaces one that does not.
    if (FAILURES.includes(step.next)) reason = stops(step.reason, policy) ? step.reason : (reason ?? step.reason);
  }
  return moved.length === 0 ? rollout : { ...withTargets(rollout, moved), reason };
}

/** An adopted target keeps the name of the attempt in progress; any other gets the present time. */
function sinceOf(snapshot: Snapshot, target: Target, next: RecordedState, now: number): string {
  const { observation } = factsOf(snapshot, target);
  const isUnderWay = observation.kind !== 'none' && !isSupersededByRetry(snapshot, target);
  const attempt = next === 'intended' && isUnderWay ? observation.attempt : '';
  // The API server would refuse a status with anything but a time.
  return Number.isNaN(Date.parse(attempt)) ? momentOf(snapshot, target, now) : attempt;
}

function conclude({ rollout, controls }: Snapshot, policy: RolloutPolicy): Rollout | undefined {
  const { abort } = controls;
  if (abort !== undefined && activeStage(rollout) !== undefined) {
    if (targetsIn(rollout, 'intended').length > 0) return undefined;
    return { ...rollout, phase: 'failed', blocked: false, reason: abortReason(abort) };
  }
  if (!isOverBudget(rollout, policy)) {
    // An invalid change of the plan may add targets that are not recorded yet.
    const done = !activeStage(rollout) && rollout.problems.length === 0;
    if (!done) return undefined;
    // No targets is no failure, but often a selector that matches nothing.
    const isEmpty = rollout.stages.every(({ targets }) => targets.length === 0);
    const reason = isEmpty ? because('NoTargets', 'there was no target, so nothing was done') : rollout.reason;
    return { ...rollout, phase: 'done', blocked: false, reason };
  }
  if (targetsIn(rollout, 'intended').length > 0) return undefined;
  return { ...rollout, phase: targetsIn(rollout, 'failed').length > 0 ? 'failed' : 'incomplete', blocked: false };
}

function start(context: DecisionContext, stage: Stage): Rollout {
  const { snapshot, now } = context;
  const { rollout } = snapshot;
  const { chosen, waiting, stopped, refusal } = choose(context, stage);
  if (refusal && targetsIn(rollout, 'intended').length === 0) {
    return { ...rollout, phase: 'invalid', blocked: false, reason: refusal };
  }
  const since = rfc3339(now);
  // A target that cannot start counts as failed, before another one starts.
  const moved =
    stopped.length > 0
      ? stopped.map(({ target, reason }): Target => ({ ...target, state: refusedState(reason), since }))
      : chosen.map((target): Target => ({ ...target, state: 'intended', since: momentOf(snapshot, target, now) }));
  const started = withTargets(rollout, moved);
  const blocked = chosen.length === 0 && waiting.some(({ reason, isPassing }) => !isPassing && !isUnasked(reason));
  const reason = rollout.reason ?? stopped[0]?.reason;
  if (started === rollout && blocked === rollout.blocked) return rollout;
  return { ...started, blocked, reason };
}

/** A failed controller stops the rollout: the next one could cost the quorum. */
function isOverBudget(rollout: Rollout, policy: RolloutPolicy): boolean {
  const failures = failuresOf(rollout);
  if (failures.size > policy.maxFailures || (rollout.reason && stops(rollout.reason, policy))) return true;
  return failures.size > 0 && targetsIn({ stages: controllersOf(rollout) }, ...FAILURES).length > 0;
}

function stops({ code }: Reason, { drain }: RolloutPolicy): boolean {
  return code === 'DrainTooLong' && drain.onDeadline === 'stop';
}

function controllersOf({ stages }: Rollout): Stage[] {
  return stages.filter(({ role, failedHoldSlots }) => role === 'controller' && failedHoldSlots !== true);
}

/** The names that count against the failure budget, once for all commands. Failures that hold their slots do not count. */
function failuresOf({ stages }: Rollout): ReadonlySet<string> {
  const counted = stages.filter(({ failedHoldSlots }) => failedHoldSlots !== true);
  const failed = (stage: Stage): Target[] => targetsIn({ stages: [stage] }, ...FAILURES);
  return new Set(counted.flatMap((stage) => failed(stage).map(({ name }) => `${stage.role} ${name}`)));
}
