/** Owns the smallest moves of a running campaign: follow what nodes report, end, or fill free slots. One move a call. */
import { rfc3339 } from '../util/clock.ts';
import { admit } from './admission.ts';
import { factsOf } from './gate-input.ts';
import type { Campaign, RecordedState, Snapshot, Stage, Target } from './model.ts';
import { isFinal } from './model.ts';
import { abortReason } from './orders.ts';
import { isForgotten, momentOf, reopened } from './orders-carried-out.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { progressOf, refusedState } from './progress.ts';
import { because, isUnasked, type Reason } from './reasons.ts';
import { type Choice, chooseTargets } from './schedule/candidates.ts';
import { freeSlots } from './schedule/slots.ts';
import { stragglersIn } from './schedule/stragglers.ts';
import { activeStage, targetsIn, withTargets } from './stages.ts';

const FAILURES: readonly RecordedState[] = ['failed', 'missing', 'unsupported'];

/** The campaign as it should be recorded next; the very same object where nothing is to be recorded. */
export function advance(snapshot: Snapshot, policy: CampaignPolicy, now: number): Campaign {
  if (snapshot.campaign.unread) return snapshot.campaign;
  const campaign = reopened(snapshot, now);
  if (campaign !== snapshot.campaign || isFinal(campaign)) return campaign;
  if (campaign.phase === 'new') return admit(snapshot, policy, now);
  const stage = activeStage(campaign);
  const followed = stage ? follow(snapshot, stage, policy, now) : campaign;
  if (followed !== campaign) return followed;
  return conclude(snapshot, policy) ?? (stage ? start(snapshot, stage, policy, now) : campaign);
}

/**
 * True where nothing more may start: somebody aborted it, the failure budget is used up, or the plan was changed into one
 * that cannot be right.
 */
export function isStopping({ campaign, orders }: Snapshot, policy: CampaignPolicy): boolean {
  return orders.abort !== undefined || isOverBudget(campaign, policy) || campaign.problems.length > 0;
}

/** The choice that `start` acts on and that `refit status` explains. */
export function choose(snapshot: Snapshot, stage: Stage, policy: CampaignPolicy, now: number): Choice {
  if (isStopping(snapshot, policy)) return { chosen: [], waiting: [], stopped: [] };
  const candidates = stage.targets.filter(({ state }) => state === 'pending');
  const slots = Math.max(0, freeSlots(stage) - stragglersIn(snapshot, now).length);
  return chooseTargets(snapshot, stage, candidates, slots, policy, now);
}

function follow(snapshot: Snapshot, stage: Stage, policy: CampaignPolicy, now: number): Campaign {
  const { campaign } = snapshot;
  const moved: Target[] = [];
  let { reason } = campaign;
  for (const target of stage.targets) {
    const step = progressOf(snapshot, stage, target, policy, now);
    if (!step.next) continue;
    moved.push({ ...target, state: step.next, since: sinceOf(snapshot, target, step.next, now) });
    // What stops everything must be told, whatever was told before.
    if (FAILURES.includes(step.next)) reason = stops(step.reason, policy) ? step.reason : (reason ?? step.reason);
  }
  return moved.length === 0 ? campaign : { ...withTargets(campaign, moved), reason };
}

/** An adopted target keeps the name of the attempt that is under way; everything else is named by the moment. */
function sinceOf(snapshot: Snapshot, target: Target, next: RecordedState, now: number): string {
  const { observation } = factsOf(snapshot, target);
  const isUnderWay = observation.kind !== 'none' && !isForgotten(snapshot, target);
  const attempt = next === 'intended' && isUnderWay ? observation.attempt : '';
  // A status that holds anything but a time would be refused, and the plan could never go on.
  return Number.isNaN(Date.parse(attempt)) ? momentOf(snapshot, target, now) : attempt;
}

function conclude({ campaign, orders }: Snapshot, policy: CampaignPolicy): Campaign | undefined {
  const { abort } = orders;
  if (abort !== undefined && activeStage(campaign) !== undefined) {
    if (targetsIn(campaign, 'intended').length > 0) return undefined;
    return { ...campaign, phase: 'failed', blocked: false, reason: abortReason(abort) };
  }
  if (!isOverBudget(campaign, policy)) {
    // What a plan was changed into while it ran may hold more than was recorded: while that cannot be right, it is not done.
    const done = !activeStage(campaign) && campaign.problems.length === 0;
    if (!done) return undefined;
    // Nothing to do is no failure, but hardly what anybody wanted: a selector that matches nothing looks just like this.
    const isEmpty = campaign.stages.every(({ targets }) => targets.length === 0);
    const reason = isEmpty ? because('NoTargets', 'there was no target, so nothing was done') : campaign.reason;
    return { ...campaign, phase: 'done', blocked: false, reason };
  }
  if (targetsIn(campaign, 'intended').length > 0) return undefined;
  return { ...campaign, phase: targetsIn(campaign, 'failed').length > 0 ? 'failed' : 'incomplete', blocked: false };
}

function start(snapshot: Snapshot, stage: Stage, policy: CampaignPolicy, now: number): Campaign {
  const { campaign } = snapshot;
  const { chosen, waiting, stopped, refusal } = choose(snapshot, stage, policy, now);
  if (refusal && targetsIn(campaign, 'intended').length === 0) {
    return { ...campaign, phase: 'invalid', blocked: false, reason: refusal };
  }
  const since = rfc3339(now);
  // A target that cannot start is a failure, and failures are counted before anything more is started.
  const moved =
    stopped.length > 0
      ? stopped.map(({ target, reason }): Target => ({ ...target, state: refusedState(reason), since }))
      : chosen.map((target): Target => ({ ...target, state: 'intended', since: momentOf(snapshot, target, now) }));
  const started = withTargets(campaign, moved);
  const blocked = chosen.length === 0 && waiting.some(({ reason, isPassing }) => !isPassing && !isUnasked(reason));
  const reason = campaign.reason ?? stopped[0]?.reason;
  if (started === campaign && blocked === campaign.blocked) return campaign;
  return { ...started, blocked, reason };
}

/** A controller that failed stops everything: the next one could cost the quorum. */
function isOverBudget(campaign: Campaign, policy: CampaignPolicy): boolean {
  const failures = failuresOf(campaign);
  if (failures.size > policy.maxFailures || (campaign.reason && stops(campaign.reason, policy))) return true;
  return failures.size > 0 && targetsIn({ stages: controllersOf(campaign) }, ...FAILURES).length > 0;
}

function stops({ code }: Reason, { drain }: CampaignPolicy): boolean {
  return code === 'DrainTooLong' && drain.onDeadline === 'stop';
}

function controllersOf({ stages }: Campaign): Stage[] {
  return stages.filter(({ role, failedHoldSlots }) => role === 'controller' && failedHoldSlots !== true);
}

/**
 * Who failed and counts against the budget, once in however many commands: where failures hold their slots instead, they
 * stop nobody else.
 */
function failuresOf({ stages }: Campaign): ReadonlySet<string> {
  const counted = stages.filter(({ failedHoldSlots }) => failedHoldSlots !== true);
  const failed = (stage: Stage): Target[] => targetsIn({ stages: [stage] }, ...FAILURES);
  return new Set(counted.flatMap((stage) => failed(stage).map(({ name }) => `${stage.role} ${name}`)));
}
