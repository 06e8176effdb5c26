/** Owns the first decision about a campaign: it is recorded as running, or refused with every reason that stands against it. */
import { rfc3339 } from '../util/clock.ts';
import { gateInput } from './gate-input.ts';
import { evaluate } from './gates/chain.ts';
import { ADMISSION } from './gates/registry.ts';
import type { Campaign, Snapshot, Target } from './model.ts';
import { abortReason } from './orders.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { payloadProblems } from './policy/payload-rules.ts';
import { refusedState } from './progress.ts';
import { because, type Reason } from './reasons.ts';
import { freeSlots } from './schedule/slots.ts';
import { withTargets } from './stages.ts';
import { isUnanswered } from './unanswered.ts';
import { versionVerdict } from './version-verdict.ts';

/** Refusing comes before anything is touched, so a plan that cannot be carried out whole is not begun. */
export function admit(snapshot: Snapshot, policy: CampaignPolicy, now: number): Campaign {
  const { campaign, preconditions, orders } = snapshot;
  const { problems } = campaign;
  const [problem] = problems;
  if (problem) return { ...campaign, phase: 'invalid', reason: because(problem.code, listed(problems)) };
  if (orders.abort !== undefined) return { ...campaign, phase: 'failed', reason: abortReason(orders.abort) };
  // What the policy would refuse is judged only here: it must be readable first.
  if (preconditions === 'unasked' || isUnanswered(preconditions) || policy.problems.length > 0) return campaign;
  const [unmet] = preconditions ?? [];
  if (unmet) return { ...campaign, phase: 'invalid', reason: because(unmet.code, listed(preconditions ?? [])) };
  const broken = [...payloadProblems(campaign.stages, policy), ...versionVerdict(snapshot, policy).problems];
  const [rule] = broken;
  if (rule) return { ...campaign, phase: 'invalid', reason: because(rule.code, listed(broken)) };
  const refusals: Reason[] = [];
  const refused: Target[] = [];
  for (const stage of campaign.stages) {
    for (const target of stage.targets) {
      const verdict = evaluate(ADMISSION, gateInput({ snapshot, stage, target, policy, now }, freeSlots(stage)));
      if (verdict.kind !== 'stop') continue;
      refusals.push(verdict.reason);
      refused.push({ ...target, state: refusedState(verdict.reason), since: rfc3339(now) });
    }
  }
  const [first] = refusals;
  if (!first) return { ...campaign, phase: 'running' };
  const message = listed(refusals);
  return { ...withTargets(campaign, refused), phase: 'incomplete', reason: because(first.code, message) };
}

/** Reasons that are told one by one: more of them nobody reads, and an event or a status would not hold them. */
const MAX_LISTED = 5;

function listed(reasons: readonly Reason[]): string {
  const messages = reasons.slice(0, MAX_LISTED).map(({ message }) => message);
  const rest = reasons.length - messages.length;
  return [...messages, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}
