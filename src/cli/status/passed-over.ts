/** Owns what holds targets that others were let past: while these fill the slots no decision hangs on those, and people ask all the same. */
import { isStopping } from '../../engine/advance.ts';
import { gateInput } from '../../engine/gate-input.ts';
import { evaluate } from '../../engine/gates/chain.ts';
import { BEFORE } from '../../engine/gates/registry.ts';
import { type Inquiry, isFinal, type Snapshot, type Target, type Wait } from '../../engine/model.ts';
import type { CampaignPolicy } from '../../engine/policy/campaign-policy.ts';
import type { ReasonCode } from '../../engine/reasons.ts';
import { activeStage } from '../../engine/stages.ts';

interface PassedOver {
  readonly waits: readonly Wait[];
  /** What would have to be asked to know more. */
  readonly inquiries: readonly Inquiry[];
}

/** Those that are told; each may be a question to the API server. */
const MOST_TARGETS = 10;
/** Of the target itself: what holds all of them is told of all of them. */
const OWN: ReadonlySet<ReasonCode> = new Set(['NodeNotReady', 'DrainBlocked', 'DrainRefused']);

export function passedOver(snapshot: Snapshot, policy: CampaignPolicy, now: number): PassedOver {
  const { campaign } = snapshot;
  const stage = activeStage(campaign);
  if (!stage || isFinal(campaign) || campaign.unread || isStopping(snapshot, policy))
    return { waits: [], inquiries: [] };
  const verdicts = overtaken(stage.targets)
    .slice(0, MOST_TARGETS)
    .map((target) => ({ target, verdict: evaluate(BEFORE, gateInput({ snapshot, stage, target, policy, now }, 1)) }));
  return {
    waits: verdicts.flatMap(({ target, verdict }) => {
      if (verdict.kind !== 'wait' || !OWN.has(verdict.reason.code)) return [];
      const { gate, reason, since = target.since } = verdict;
      return [{ target: target.name, gate, reason, since }];
    }),
    inquiries: verdicts.flatMap(({ verdict }) => (verdict.kind === 'wait' ? (verdict.inquiry ?? []) : [])),
  };
}

/** Not begun, although one behind them is. */
function overtaken(targets: readonly Target[]): readonly Target[] {
  const last = targets.findLastIndex(({ state }) => state !== 'pending');
  return targets.slice(0, Math.max(0, last)).filter(({ state }) => state === 'pending');
}
