/** Owns the first decision about a campaign: it is recorded as running, or refused with every reason that stands against it. */
import { rfc3339 } from '../util/clock.ts';
import { evaluate, type Refusal } from './gates/chain.ts';
import { ADMISSION } from './gates/registry.ts';
import type { Campaign, Snapshot, Target } from './model.ts';
import { factsOf, refusedState } from './progress.ts';
import { because } from './reasons.ts';
import { withTargets } from './stages.ts';

/** Refusing comes before anything is touched, so a plan that cannot be carried out whole is not begun. */
export function admit(snapshot: Snapshot, now: number): Campaign {
  const { campaign } = snapshot;
  const [problem] = campaign.problems;
  if (problem)
    return { ...campaign, phase: 'invalid', reason: listed(campaign.problems.map(({ message }) => message)) };
  const refusals: Refusal[] = [];
  const refused: Target[] = [];
  for (const stage of campaign.stages) {
    for (const target of stage.targets) {
      const verdict = evaluate(ADMISSION, { stage, target, facts: factsOf(snapshot, target), controlPlane: undefined });
      if (verdict.kind === 'pass') continue;
      refusals.push(verdict);
      refused.push({ ...target, state: refusedState(verdict.reason), since: rfc3339(now) });
    }
  }
  const [first] = refusals;
  if (!first) return { ...campaign, phase: 'running' };
  const message = refusals.map(({ reason }) => reason.message).join('; ');
  return { ...withTargets(campaign, refused), phase: 'incomplete', reason: because(first.reason.code, message) };
}

function listed(messages: readonly string[]): ReturnType<typeof because> {
  return because('InvalidPlan', messages.join('; '));
}
