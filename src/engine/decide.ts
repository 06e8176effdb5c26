/**
 * Owns the decision: one pure function from what is recorded and seen to what is recorded and signalled next. The same
 * function runs in the controller, in `refit status`, in the tests and in the explorer; there is no second copy of a rule.
 */
import { advance } from './advance.ts';
import { ownerOf } from './cordons.ts';
import { errandsOf } from './errands.ts';
import { explain } from './explain.ts';
import { factsOf } from './gate-input.ts';
import type { Campaign, Decision, Signalling, Snapshot } from './model.ts';
import { isFinal } from './model.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { progressOf } from './progress.ts';
import { activeStage } from './stages.ts';

/** `now` in milliseconds since the Unix epoch. The same input always gives the same decision. */
export function decide(snapshot: Snapshot, policy: CampaignPolicy, now: number): Decision {
  const campaign = settle(snapshot, policy, now);
  const unrecorded = campaign !== snapshot.campaign;
  const explanation = explain({ ...snapshot, campaign }, policy, now);
  return {
    ...explanation,
    record: unrecorded ? campaign : undefined,
    signals: unrecorded ? [] : signalsOf(snapshot, policy, now),
    errands: unrecorded ? [] : errandsOf(snapshot, policy, now),
  };
}

/** Moves on until nothing moves, so that one write records all: a target done, and the next ones intended. */
function settle(snapshot: Snapshot, policy: CampaignPolicy, now: number): Campaign {
  const campaign = advance(snapshot, policy, now);
  return campaign === snapshot.campaign ? campaign : settle({ ...snapshot, campaign }, policy, now);
}

/** Signals for what is recorded as it stands, whatever else is to be recorded. */
export function signalsOf(snapshot: Snapshot, policy: CampaignPolicy, now: number): Signalling[] {
  const stage = activeStage(snapshot.campaign);
  if (!stage || isFinal(snapshot.campaign) || snapshot.campaign.unread) return [];
  return stage.targets.flatMap((target) => {
    if (progressOf(snapshot, stage, target, policy, now).effect !== 'signal') return [];
    const { node, platform = '' } = factsOf(snapshot, target);
    const owner = ownerOf(snapshot.campaign, target);
    const found = node?.unschedulable === true && node.cordonOwner === undefined;
    const cordon = { cordonFor: owner, ...(found ? { foundCordoned: true as const } : {}) };
    const agent = node && policy.drain.enabled ? { ...policy.agent, ...cordon } : policy.agent;
    if (!stage.payloads) return [{ stage, target, agent }];
    const payload = stage.payloads[platform];
    return payload ? [{ stage, target, payload, agent }] : [];
  });
}
