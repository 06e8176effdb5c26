/**
 * Computes how many targets of a stage may start now, and chooses them in list order, so that a repeated decision is the same.
 * Failed targets that still work hold their slots.
 */
import { BEFORE_TARGET, evaluate, type Refusal } from '../gates/registry.ts';
import * as gating from '../gates/types.ts';
import { because, type Reason } from '../model/reasons.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { STALE_AFTER_MS } from '../snapshot/gather.ts';
import { groupsOf, orderCheck } from './order.ts';
import { waveCheck } from './waves.ts';

/**
 * Returns how many targets of the stage may be in progress at the same time. Two controllers in progress at the same
 * time can cost the quorum.
 */
export function limitOf({ role, maxInFlight }: Stage): number {
  return role === 'controller' ? Math.min(1, maxInFlight) : maxInFlight;
}

/**
 * Returns the number of slots that no target occupies. A target occupies a slot from the time when its intent is
 * recorded until its end is recorded.
 */
export function freeSlots(stage: Stage): number {
  const failed = stage.failedHoldSlots === true ? inState(stage, 'failed').length : 0;
  return Math.max(0, limitOf(stage) - inState(stage, 'intended').length - failed);
}

/**
 * Returns how many further targets of the stage may start. Failed targets that still work take
 * slots, too.
 */
export function openSlots({ snapshot, policy, now }: gating.DecisionContext, stage: Stage): number {
  return Math.max(0, freeWithin(stage, policy) - failedInFlightIn(snapshot, now).length);
}

/**
 * Returns the number of free slots under the policy. In some stages, failed targets keep their slots. If the policy has
 * a failure budget, the failed targets of such a stage occupy no slots until their number exceeds the budget. If their
 * number exceeds the budget, no slot is free.
 */
export function freeWithin(stage: Stage, { maxFailures }: RolloutPolicy): number {
  if (stage.failedHoldSlots !== true || maxFailures === 0) return freeSlots(stage);
  return inState(stage, 'failed').length > maxFailures
    ? 0
    : freeSlots({ ...stage, failedHoldSlots: false });
}

/**
 * Returns the failed and skipped targets whose nodes still work. `leftMs` is the time in milliseconds for which such a
 * target still counts. Omits stages in which failed targets keep their slots, because `freeSlots` counts these targets.
 * A node that is not Ready does no work.
 */
export function failedInFlightIn(snapshot: Snapshot, now: number) {
  return snapshot.rollout.stages
    .filter(({ failedHoldSlots }) => failedHoldSlots !== true)
    .flatMap((stage) => [...inState(stage, 'failed'), ...inState(stage, 'skipped')])
    .flatMap((target) => {
      const { observation, ready } = gating.factsOf(snapshot, target);
      const isAtWork = observation.kind === 'sent' || observation.kind === 'working';
      if (!isAtWork || ready === false) return [];
      // The time that the node reports may be in the future or unreadable. Therefore it counts as at most
      // STALE_AFTER_MS later than the recorded failure, and an unreadable time counts as the time of that failure.
      const failed = Date.parse(target.since);
      const reported = Date.parse(observation.since);
      const last = Number.isNaN(reported) ? failed : Math.min(reported, failed + STALE_AFTER_MS);
      // The target stops counting after this time if no new report comes.
      const leftMs = last + STALE_AFTER_MS - now;
      return leftMs > 0 ? [{ target, leftMs }] : [];
    });
}

/**
 * A target that a gate prevents from starting. If `ofRollout` is true, the answer of the gate applies to all other
 * targets as well, so the gate is not evaluated for them.
 */
export interface GatedTarget
  extends Partial<Omit<gating.Waiting, 'kind' | 'reason'>>,
    Pick<gating.Gate, 'ofRollout' | 'isOfTargetAlone'> {
  readonly target: Target;
  readonly gate: string;
  readonly reason: Reason;
}

export interface Choice {
  /** The targets to record as intended, at most as many as there are free slots. */
  readonly chosen: readonly Target[];
  readonly waiting: readonly GatedTarget[];
  readonly stopped: readonly GatedTarget[];
  /** The reason why the plan itself is wrong. If it is set, nothing is chosen, and the rollout ends once nothing is in flight. */
  readonly refusal?: Reason;
}

/** The clause that says what ends a rollout in which nothing new starts. */
export const FINISHING_ENDS = 'the nodes in progress have finished; then the plan ends';
/**
 * The number of blocked targets after which a decision probes no further targets. The targets that are not probed wait
 * as well. The number is limited because each probe costs some requests every few seconds.
 */
const MAX_BLOCKED_PROBES = 50;

/**
 * Chooses the targets to start. A waiting worker does not prevent later workers from starting. A waiting controller
 * prevents later controllers from starting, because the loss of two controllers can cost the quorum. A controller that
 * somebody holds is healthy, so later controllers may start.
 */
export function chooseTargets(
  context: gating.DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
  slots: number,
): Choice {
  // Sorts the targets only if there is a free slot, because sorting reads every target.
  if (slots <= 0 || candidates.length === 0) return { chosen: [], waiting: [], stopped: [] };
  const { snapshot, policy } = context;
  const chosen: Target[] = [];
  const waiting: GatedTarget[] = [];
  const stopped: GatedTarget[] = [];
  const orderWaitOf = orderCheck(context, stage);
  const waveWaitOf = waveCheck(context, stage);
  let census = gating.censusFor(snapshot, policy);
  let probes = 0;
  let blocked = 0;
  let held = 0;
  for (const target of groupsOf(context, stage, candidates).flat()) {
    if (chosen.length + held >= slots) break;
    const verdict =
      orderWaitOf(target) ??
      waveWaitOf(target) ??
      evaluate(
        BEFORE_TARGET,
        gating.gateInput({ ...context, stage, target }, slots - chosen.length, census),
      );
    if (verdict.kind === 'pass') {
      chosen.push(target);
      const node = gating.nodeNameOf(target, gating.factsOf(snapshot, target));
      if (census?.all.has(node)) census = { ...census, busy: census.busy.union(new Set([node])) };
    }
    if (verdict.kind === 'wait') waiting.push({ target, ...verdict });
    if (verdict.kind === 'wait' && verdict.holdsSlot === true) held++;
    if (verdict.kind === 'stop' && verdict.ofPlan) return refused(target, verdict, stopped);
    if (verdict.kind === 'stop') stopped.push({ target, ...verdict });
    if (verdict.kind === 'wait' && verdict.isOfTargetAlone === true) continue;
    const isSerial = stage.role === 'controller' || verdict.ofRollout === true;
    if (waiting.some(({ isOfTargetAlone }) => isOfTargetAlone !== true) && isSerial) break;
    if (verdict.kind === 'wait' && verdict.probe) probes++;
    else if (verdict.kind === 'wait' && verdict.probesEachTarget === true) blocked++;
    // Each probe is a request. Therefore the number of probes of one decision is limited to the number of slots, or to
    // the number of targets that are known to be blocked if that is larger.
    if (probes >= Math.max(slots, blocked) || blocked >= Math.max(slots, MAX_BLOCKED_PROBES)) break;
  }
  const refusal = chosen.length > 0 ? planRefusal(context, stage, candidates) : undefined;
  return refusal ? refused(refusal.target, refusal.verdict, stopped) : { chosen, waiting, stopped };
}

/**
 * Returns the target with the answer of the gate that makes it wait; undefined if no gate makes it wait. Ignores the
 * position of the target in the order.
 */
export function gatedTarget(
  context: gating.DecisionContext,
  stage: Stage,
  target: Target,
): GatedTarget | undefined {
  const verdict = evaluate(BEFORE_TARGET, gating.gateInput({ ...context, stage, target }, 1));
  return verdict.kind === 'wait' ? { target, ...verdict } : undefined;
}

/**
 * Returns the first candidate for which the plan itself is wrong. Checks the whole list, because it would be useless to
 * start the targets before that candidate.
 */
export function planRefusal(
  context: gating.DecisionContext,
  stage: Stage,
  candidates: readonly Target[],
) {
  const refusing = BEFORE_TARGET.filter((gate) => gate.mayRefusePlan?.(context.snapshot) === true);
  const passed = new Set<string | undefined>();
  for (const target of refusing.length > 0 ? candidates : []) {
    const { version } = gating.factsOf(context.snapshot, target);
    if (passed.has(version)) continue;
    const verdict = evaluate(refusing, gating.gateInput({ ...context, stage, target }, 1));
    if (verdict.kind === 'pass') passed.add(version);
    if (verdict.kind === 'stop' && verdict.ofPlan) return { target, verdict };
  }
  return undefined;
}

function refused(
  target: Target,
  { gate, reason }: Refusal,
  stopped: readonly GatedTarget[],
): Choice {
  const why = because('FinishingInFlight', `Refit starts nothing new: ${reason.message}`);
  const waiting = [{ target, gate, reason: why, ends: FINISHING_ENDS, ofRollout: true }];
  return { chosen: [], waiting, stopped, refusal: reason };
}
