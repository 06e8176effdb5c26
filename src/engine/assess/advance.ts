/**
 * Advances a rollout by one step: admits the rollout, processes the reports of the nodes, starts targets for free
 * slots, or ends the rollout.
 */
import { kubeletVersionOf } from '../../kube/resources.ts';
import { virtualBy } from '../../kube/virtual-nodes.ts';
import { rfc3339 } from '../../util/clock.ts';
import { onceForEach } from '../../util/memo.ts';
import { listedSentences } from '../../util/phrases.ts';
import { type KubeletLag, kubeletsLeftBehind } from '../../versions/kubelet-lag.ts';
import { judgePlan, type VersionVerdict } from '../../versions/plan-rules.ts';
import { pinAgainst } from '../gates/pins.ts';
import { BEFORE_ROLLOUT, evaluate } from '../gates/registry.ts';
import { type DecisionContext, factsOf, gateInput, nodeNameOf } from '../gates/types.ts';
import { answerOf, isAwaited } from '../model/asked.ts';
import { abortReason } from '../model/controls.ts';
import { asksForEarlierVersions, goesBack } from '../model/earlier-versions.ts';
import { because, isUnasked, type Reason } from '../model/reasons.ts';
import {
  inState,
  isFinal,
  type RecordedState,
  type Rollout,
  type RolloutPhase,
  type Stage,
  type Target,
  targetsIn,
  withStages,
  withTargets,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { reasonAbout } from '../reasons/about-target.ts';
import { combined } from '../reasons/combined.ts';
import { payloadProblems } from '../reasons/downloads.ts';
import { type Choice, chooseTargets, freeSlots, planRefusal } from '../schedule/slots.ts';
import { type Assessment, assess } from './assess.ts';
import { FAILURES, stops, tooManyBlocked } from './budget.ts';
import { NOTHING_DONE } from './ended.ts';
import { isAtRest, refusedState } from './evaluate-target.ts';
import { withJoinedNodes } from './joined-targets.ts';
import { isGoneAndLeftOut, targetsToLeaveOut } from './left-out.ts';
import { lastingFailures, outcomeOf } from './outcome.ts';
import { isSupersededByRetry, momentOf, withRetries } from './retry.ts';

/** Returns the rollout to record next; the same object if nothing changes. */
export function advance(assessment: Assessment): Rollout {
  return withRuleForEdits(assessment, move(assessment));
}

/**
 * Returns the rollout with the value of `ignoresEdits` that the policy and the phase require; the same object if the
 * value does not change.
 */
function withRuleForEdits({ snapshot, policy }: Assessment, rollout: Rollout): Rollout {
  if (rollout.unread) return rollout;
  const isWanted =
    rollout.phase === 'running' &&
    policy.ignoresEdits === true &&
    snapshot.abilities.canIgnoreEdits;
  if (isWanted === (rollout.ignoresEdits === true)) return rollout;
  return { ...rollout, ignoresEdits: isWanted ? true : undefined };
}

function move(assessment: Assessment): Rollout {
  const { snapshot, now } = assessment;
  if (snapshot.rollout.unread) return snapshot.rollout;
  const rollout = withRetries(snapshot, now);
  if (rollout !== snapshot.rollout || isFinal(rollout)) return rollout;
  if (rollout.phase === 'new') return admit(assessment);
  const { stage } = assessment;
  const followed = stage ? follow(assessment, stage) : rollout;
  if (followed !== rollout) return followed;
  const grown = withJoinedNodes(assessment);
  if (grown !== rollout) return grown;
  return conclude(assessment) ?? (stage ? start(assessment, stage) : rollout);
}

/**
 * Returns the assessment of the rollout after all steps that need no new information. So one write records both that a
 * target is done and that the next targets are intended. Returns the same object if no step is possible.
 */
export const settle = onceForEach((assessment: Assessment): Assessment => {
  const { snapshot, policy, now } = assessment;
  const rollout = advance(assessment);
  if (rollout === snapshot.rollout) return assessment;
  return settle(assess({ ...snapshot, rollout }, policy, now));
});

/** Returns the choice of targets. `start` starts the chosen targets, and `refit status` explains the choice. */
export function choose(assessment: Assessment, stage: Stage): Choice {
  if (assessment.isStopping) return { chosen: [], waiting: [], stopped: [] };
  return chooseTargets(assessment, stage, inState(stage, 'pending'), assessment.openSlots);
}

function follow(assessment: Assessment, stage: Stage): Rollout {
  const { snapshot, policy, now } = assessment;
  const { rollout } = snapshot;
  const moved: Target[] = [];
  let { reason } = rollout;
  for (const target of stage.targets.filter((each) => !isAtRest(snapshot, each))) {
    const step = assessment.of(stage, target);
    const next = step.next ?? unrecordedAttempt(snapshot, target);
    if (!next) continue;
    const { lacksAttempt: _, ...known } = target;
    moved.push({ ...known, state: next, since: sinceOf(snapshot, target, next, now) });
    // The rollout has only one reason. If a failure stops the rollout, its reason replaces the reason of a failure that
    // does not stop it.
    if (FAILURES.includes(next)) {
      const failure = reasonAbout(target.name, step.reason);
      reason = stops(failure, policy) ? failure : (reason ?? failure);
    }
  }
  return moved.length === 0 ? rollout : { ...withTargets(rollout, moved), reason };
}

/** Returns the state to record for a target whose attempt is under way, but is not recorded; undefined for any other target. */
function unrecordedAttempt(snapshot: Snapshot, target: Target): 'intended' | undefined {
  if (target.lacksAttempt !== true || snapshot.plan.controls.abort !== undefined) return undefined;
  const { observation, refusal } = factsOf(snapshot, target);
  return observation.kind !== 'none' && !refusal ? 'intended' : undefined;
}

/**
 * Returns the time to record as `since` of the target. If the leader adopts a target, the target is already working.
 * The signal of this target identifies the attempt by the time at which it was intended, so the same time is recorded
 * again. For any other target, the result is the current time.
 */
function sinceOf(snapshot: Snapshot, target: Target, next: RecordedState, now: number): string {
  const { observation } = factsOf(snapshot, target);
  const isUnderWay = observation.kind !== 'none' && !isSupersededByRetry(snapshot, target);
  const attempt = next === 'intended' && isUnderWay ? observation.attempt : '';
  // The API server refuses a status whose time has another format, and `Date.parse` accepts many other formats.
  return Number.isNaN(Date.parse(attempt))
    ? momentOf(snapshot, target, now)
    : rfc3339(Date.parse(attempt));
}

function conclude({ snapshot, policy, stage, isOverBudget }: Assessment): Rollout | undefined {
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const abort = stage && controls.abort;
  // If the policy pauses the rollout on failure, the rollout ends only when no stage is left.
  const isPausing = policy.pausesOnFailure === true && stage !== undefined;
  if (abort !== undefined || (isOverBudget && !isPausing)) {
    if (targetsIn(rollout, 'intended').length > 0) return undefined;
    if (abort === undefined) {
      const reason = rollout.reason ?? tooManyBlocked(snapshot, policy);
      return { ...rollout, phase: failurePhase(rollout), blocked: false, reason };
    }
    return { ...rollout, phase: 'failed', blocked: false, reason: abortReason(abort) };
  }
  // While an edit has made the plan invalid, the rollout does not end, because the edit may add targets that are not recorded yet.
  const isOver = !stage && rollout.problems.length === 0;
  return isOver ? { ...rollout, ...withinBudget(rollout), blocked: false } : undefined;
}

function failurePhase(rollout: Rollout): RolloutPhase {
  return targetsIn(rollout, 'failed').length > 0 ? 'failed' : 'incomplete';
}

/** Returns the phase and the reason for the end of a rollout that was not stopped. */
function withinBudget(rollout: Rollout): Pick<Rollout, 'phase' | 'reason'> {
  if (lastingFailures(rollout, ...FAILURES).length > 0)
    return {
      phase: failurePhase(rollout),
      reason: because('DoneWithFailures', outcomeOf(rollout)),
    };
  // A rollout without targets has not failed. Often its selector matches nothing.
  const isEmpty = rollout.stages.every(({ targets }) => targets.length === 0);
  if (targetsIn(rollout, 'skipped').length > 0)
    return { phase: 'done', reason: because('DoneWithSkipped', outcomeOf(rollout)) };
  const reason = isEmpty ? NOTHING_DONE : rollout.reason;
  return { phase: 'done', reason };
}

function start(assessment: Assessment, stage: Stage): Rollout {
  const { snapshot, now } = assessment;
  const { rollout } = snapshot;
  const { chosen, waiting, stopped, refusal } = choose(assessment, stage);
  const leftOut = chosen.length === 0 ? targetsToLeaveOut(assessment, stage, waiting) : [];
  if (leftOut.length > 0) return withTargets(rollout, leftOut);
  if (refusal && targetsIn(rollout, 'intended').length === 0)
    return { ...rollout, phase: refusedPhase(refusal), blocked: false, reason: refusal };
  const since = rfc3339(now);
  const isLeftOut = (reason: Reason): boolean => isGoneAndLeftOut(assessment, stage, reason);
  const stoppedState = (reason: Reason): RecordedState =>
    isLeftOut(reason) ? 'skipped' : refusedState(reason);
  // If some targets can never start, this step records only that. A later step starts other targets.
  const moved =
    stopped.length > 0
      ? stopped.map(
          ({ target, reason }): Target => ({ ...target, state: stoppedState(reason), since }),
        )
      : chosen.map(
          (target): Target => ({
            ...target,
            state: 'intended',
            since: momentOf(snapshot, target, now),
          }),
        );
  const started = withTargets(rollout, moved);
  const blocked = waiting.some(({ reason, isPassing }) => !isPassing && !isUnasked(reason));
  const first = stopped.find((each) => !isLeftOut(each.reason));
  const reason = rollout.reason ?? (first && reasonAbout(first.target.name, first.reason));
  if (started === rollout && blocked === rollout.blocked) return started;
  return { ...started, blocked, reason };
}

/** Returns the phase of a plan that is refused. It is `incomplete` if an API server is not ready, because the plan itself may be valid. */
function refusedPhase({ code }: Reason): RolloutPhase {
  return code === 'ControlPlaneNotReady' ? 'incomplete' : 'invalid';
}

/** Admits a rollout. If the plan cannot be completed, it is refused before any node is changed. */
export function admit(context: DecisionContext): Rollout {
  const { snapshot, policy, now } = context;
  const { rollout } = snapshot;
  const { preconditions, controls } = snapshot.plan;
  const problem = together(rollout.problems);
  if (problem) return { ...rollout, phase: 'invalid', reason: problem };
  if (controls.abort !== undefined)
    return { ...rollout, phase: 'failed', reason: abortReason(controls.abort) };
  // The rules below cannot be applied under a policy that cannot be read.
  if (isAwaited(preconditions) || policy.problems.length > 0) return rollout;
  if (asksForEarlierVersions(snapshot)) return rollout;
  const unmet = together(answerOf(preconditions) ?? []);
  if (unmet) return { ...rollout, phase: 'invalid', reason: unmet };
  const broken = together(brokenRules(context));
  if (broken) return { ...rollout, phase: 'invalid', reason: broken };
  const stopped = stoppedTargets(context);
  const incomplete = stopped.filter(({ verdict: { reason } }) => reason.code !== 'Excluded');
  const refusal = together(incomplete.map(({ verdict: { reason } }) => reason));
  if (!refusal) {
    const exclusion = together(stopped.map(({ verdict: { reason } }) => reason));
    return exclusion
      ? { ...rollout, phase: 'invalid', reason: exclusion }
      : { ...rollout, phase: 'running' };
  }
  const since = rfc3339(now);
  const refused = incomplete.map(
    ({ target, verdict: { reason } }): Target => ({
      ...target,
      state: refusedState(reason),
      since,
    }),
  );
  return { ...withTargets(rollout, refused), phase: 'incomplete', reason: refusal };
}

/**
 * Returns every reason to refuse a plan that has not started. In contrast, `admit` reports some of these reasons only
 * after other problems are corrected, and the leader finds some of them only when a later stage begins.
 */
export function refusalsOf(context: DecisionContext): Reason[] {
  const { snapshot, policy } = context;
  const { rollout } = snapshot;
  const { preconditions } = snapshot.plan;
  const unmet = answerOf(preconditions) ?? [];
  return [
    ...rollout.problems,
    ...unmet,
    // The rules below cannot be applied under a policy that cannot be read.
    ...(policy.problems.length > 0
      ? []
      : [
          ...brokenRules(context),
          ...stoppedTargets(context).map(({ verdict: { reason } }) => reason),
          ...laterRefusals(context),
        ]),
  ];
}

/**
 * Returns the reasons for which a gate would refuse the whole plan after it has started, as if all targets of the
 * earlier stages were done. Leaves out the rules that the plan breaks already before its start.
 */
function laterRefusals({ snapshot, policy, now }: DecisionContext): Reason[] {
  const known = new Set(brokenRules({ snapshot, policy, now }).map(({ code }) => code));
  let { rollout } = snapshot;
  return rollout.stages.flatMap((stage) => {
    const context = { snapshot: { ...snapshot, rollout }, policy, now };
    const reason = planRefusal(context, stage, inState(stage, 'pending'))?.verdict.reason;
    const done = inState(stage, 'pending').map((target): Target => ({ ...target, state: 'done' }));
    rollout = withTargets(rollout, done);
    return reason === undefined || known.has(reason.code) ? [] : [reason];
  });
}

function brokenRules({ snapshot, policy }: DecisionContext): Reason[] {
  // Until the record of the earlier run is read, nobody knows whether the targets go back to exactly the versions that they ran before.
  const { problems } = asksForEarlierVersions(snapshot)
    ? { problems: [] }
    : versionVerdict(snapshot, policy);
  return [...payloadProblems(snapshot.rollout.stages, policy), ...problems];
}

/** Returns the targets that can never start, with the reason of each. */
export function stoppedTargets(context: DecisionContext) {
  return withStages(context.snapshot.rollout).flatMap(({ stage, target }) => {
    const input = gateInput({ ...context, stage, target }, freeSlots(stage));
    const verdict = evaluate(BEFORE_ROLLOUT, input);
    return verdict.kind === 'stop' ? [{ target, verdict }] : [];
  });
}

/** The most reasons that one message lists. The message only counts the other reasons, so that it fits into an Event or a status. */
const MAX_LISTED = 5;

/**
 * Combines the reasons into one reason, with the code of the first reason and the messages of all reasons. Returns
 * undefined if there are no reasons.
 */
function together(reasons: readonly Reason[]): Reason | undefined {
  const messages = reasons.map(({ message }) => message);
  return combined(reasons, listedSentences(messages, MAX_LISTED));
}

/**
 * Checks the version step of every target of the plan, from its current version to the wanted version. Also compares
 * both versions with the versions of the API servers. Targets that are pinned to another version are ignored. Returns
 * no problem if the version skew rules do not apply.
 */
export function versionVerdict(snapshot: Snapshot, policy: RolloutPolicy): VersionVerdict {
  const { allow, countsVirtual = false } = policy;
  const { rollout } = snapshot;
  const { apiServers } = snapshot.cluster;
  const { waitsForVersions } = snapshot.abilities;
  // The gates check each target before it starts.
  if (!apiServers || waitsForVersions) return { problems: [], unchecked: [] };
  const stages = rollout.stages
    .filter(({ keepsVersion }) => keepsVersion !== true)
    .map((stage) => ({
      ...stage,
      targets: stage.targets.flatMap((target) => {
        const facts = factsOf(snapshot, target);
        if (pinAgainst(policy, stage, facts) !== undefined) return [];
        const { version: current, node, virtual } = facts;
        return {
          goesBack: goesBack(snapshot, stage, target, facts),
          name: target.name,
          current,
          virtual: countsVirtual ? undefined : virtual,
          hasKubelet: stage.role === 'worker' || node !== undefined,
        };
      }),
    }));
  const { problems, unchecked } = judgePlan(stages, apiServers, allow);
  const lag = allow.has('KubeletBehind') ? undefined : lagOf(snapshot, countsVirtual);
  const behind = lag === undefined ? [] : kubeletsLeftBehind(stages, apiServers, lag);
  return { problems: [...problems, ...behind], unchecked };
}

/**
 * Returns the kubelets that a plan may leave behind; undefined if the distribution states no limit. A kubelet of a
 * controller gets its version together with the API server of the controller.
 */
function lagOf(snapshot: Snapshot, countsVirtual: boolean): KubeletLag | undefined {
  const { rollout } = snapshot;
  const { fleet = [], apiServers = [] } = snapshot.cluster;
  const { mostBehind } = snapshot.abilities;
  if (mostBehind === undefined) return undefined;
  const ofControllers = new Set([
    ...apiServers.map(({ name }) => name),
    ...rollout.stages
      .filter(({ role }) => role === 'controller')
      .flatMap(({ targets }) =>
        targets.map((target) => nodeNameOf(target, factsOf(snapshot, target))),
      ),
  ]);
  const kubelets = fleet
    .filter((node) => countsVirtual || virtualBy(node) === undefined)
    .filter(({ metadata }) => !ofControllers.has(metadata.name))
    .map((node) => ({ name: node.metadata.name, version: kubeletVersionOf(node) }));
  return { kubelets, mostBehind };
}

/** Returns the reason to report when the rollout starts with an unknown version; undefined if every version is known. */
export function uncheckedReason(snapshot: Snapshot, policy: RolloutPolicy): Reason | undefined {
  const { unchecked } = versionVerdict(snapshot, policy);
  return unchecked.length === 0
    ? undefined
    : because(
        'VersionUnchecked',
        `starts without a check of the version rules: ${unchecked.join('; ')}`,
      );
}
