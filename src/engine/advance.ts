/** Owns the smallest moves of a running campaign: follow what nodes report, end, or fill free slots. One move a call. */
import { rfc3339 } from '../util/clock.ts';
import { admit } from './admission.ts';
import type { Campaign, Policy, RecordedState, Snapshot, Stage, Target } from './model.ts';
import { isFinal } from './model.ts';
import { factsOf, progressOf, refusedState } from './progress.ts';
import { type Choice, chooseTargets } from './schedule/candidates.ts';
import { freeSlots } from './schedule/slots.ts';
import { activeStage, targetsIn, withTargets } from './stages.ts';

/** The campaign as it should be recorded next; the very same object where nothing is to be recorded. */
export function advance(snapshot: Snapshot, policy: Policy, now: number): Campaign {
  const { campaign } = snapshot;
  if (isFinal(campaign)) return campaign;
  if (campaign.phase === 'new') return admit(snapshot, now);
  const stage = activeStage(campaign);
  const followed = stage ? follow(snapshot, stage, policy, now) : campaign;
  if (followed !== campaign) return followed;
  return conclude(campaign, policy) ?? (stage ? start(snapshot, stage, policy, now) : campaign);
}

/** True where nothing more may start: the failure budget is used up, or the plan was changed into one that cannot be right. */
export function isStopping(campaign: Campaign, policy: Policy): boolean {
  return failuresOf(campaign).length > policy.maxFailures || campaign.problems.length > 0;
}

/** The choice that `start` acts on and that `refit status` explains. */
export function choose(snapshot: Snapshot, stage: Stage, policy: Policy): Choice {
  if (isStopping(snapshot.campaign, policy)) return { chosen: [], waiting: [], stopped: [] };
  const candidates = stage.targets.filter(({ state }) => state === 'pending');
  return chooseTargets(snapshot, stage, candidates, freeSlots(stage));
}

function follow(snapshot: Snapshot, stage: Stage, policy: Policy, now: number): Campaign {
  const { campaign } = snapshot;
  const moved: Target[] = [];
  let { reason } = campaign;
  for (const target of stage.targets) {
    const step = progressOf(snapshot, stage, target, policy, now);
    if (!step.next) continue;
    moved.push({ ...target, state: step.next, since: sinceOf(snapshot, target, step.next, now) });
    if (step.next === 'failed') reason ??= step.reason;
  }
  return moved.length === 0 ? campaign : { ...withTargets(campaign, moved), reason };
}

/** An adopted target keeps the name of the attempt that is under way; everything else is named by the moment. */
function sinceOf(snapshot: Snapshot, target: Target, next: RecordedState, now: number): string {
  const { observation } = factsOf(snapshot, target);
  return next === 'intended' && observation.kind !== 'none' ? observation.attempt : rfc3339(now);
}

function conclude(campaign: Campaign, policy: Policy): Campaign | undefined {
  const over = !activeStage(campaign);
  if (failuresOf(campaign).length <= policy.maxFailures) {
    return over ? { ...campaign, phase: 'done', blocked: false } : undefined;
  }
  if (targetsIn(campaign, 'intended').length > 0) return undefined;
  return { ...campaign, phase: targetsIn(campaign, 'failed').length > 0 ? 'failed' : 'incomplete', blocked: false };
}

function start(snapshot: Snapshot, stage: Stage, policy: Policy, now: number): Campaign {
  const { campaign } = snapshot;
  const { chosen, waiting, stopped } = choose(snapshot, stage, policy);
  const since = rfc3339(now);
  const started = withTargets(campaign, [
    ...chosen.map((target): Target => ({ ...target, state: 'intended', since })),
    ...stopped.map(({ target, reason }): Target => ({ ...target, state: refusedState(reason), since })),
  ]);
  // A question that was not asked yet is no obstacle: the answer comes within the same reconcile.
  const blocked = chosen.length === 0 && waiting.some(({ reason }) => reason.code !== 'ControlPlaneUnknown');
  const reason = campaign.reason ?? stopped[0]?.reason;
  if (started === campaign && blocked === campaign.blocked) return campaign;
  return { ...started, blocked, reason };
}

function failuresOf(campaign: Campaign): Target[] {
  return targetsIn(campaign, 'failed', 'missing', 'unsupported');
}
