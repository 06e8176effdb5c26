/** The first decision about a rollout: it starts, or is refused with every reason against it. */
import { rfc3339 } from '../../util/clock.ts';
import { evaluate } from '../gates/chain.ts';
import { type DecisionContext, gateInput } from '../gates/context.ts';
import { ADMISSION } from '../gates/registry.ts';
import { versionVerdict } from '../gates/version-verdict.ts';
import { abortReason } from '../model/controls.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/recorded.ts';
import { withTargets } from '../model/stages.ts';
import { isUnanswered } from '../observe/probe-backoff.ts';
import { payloadProblems } from '../policy/payload-rules.ts';
import { freeSlots } from '../schedule/slots.ts';
import { refusedState } from './evaluate-target.ts';

/** Refuses a plan that cannot be completed before anything is touched. */
export function admit(context: DecisionContext): Rollout {
  const { snapshot, policy, now } = context;
  const { rollout, preconditions, controls } = snapshot;
  const { problems } = rollout;
  const [problem] = problems;
  if (problem) return { ...rollout, phase: 'invalid', reason: because(problem.code, listed(problems)) };
  if (controls.abort !== undefined) return { ...rollout, phase: 'failed', reason: abortReason(controls.abort) };
  // The rules below need a readable policy.
  if (preconditions === 'unasked' || isUnanswered(preconditions) || policy.problems.length > 0) return rollout;
  const [unmet] = preconditions ?? [];
  if (unmet) return { ...rollout, phase: 'invalid', reason: because(unmet.code, listed(preconditions ?? [])) };
  const broken = [...payloadProblems(rollout.stages, policy), ...versionVerdict(snapshot, policy).problems];
  const [rule] = broken;
  if (rule) return { ...rollout, phase: 'invalid', reason: because(rule.code, listed(broken)) };
  const refusals: Reason[] = [];
  const refused: Target[] = [];
  for (const stage of rollout.stages) {
    for (const target of stage.targets) {
      const verdict = evaluate(ADMISSION, gateInput({ ...context, stage, target }, freeSlots(stage)));
      if (verdict.kind !== 'stop') continue;
      refusals.push(verdict.reason);
      refused.push({ ...target, state: refusedState(verdict.reason), since: rfc3339(now) });
    }
  }
  const [first] = refusals;
  if (!first) return { ...rollout, phase: 'running' };
  const message = listed(refusals);
  return { ...withTargets(rollout, refused), phase: 'incomplete', reason: because(first.code, message) };
}

/** More reasons than this are only counted, to fit an Event or a status. */
const MAX_LISTED = 5;

function listed(reasons: readonly Reason[]): string {
  const messages = reasons.slice(0, MAX_LISTED).map(({ message }) => message);
  const rest = reasons.length - messages.length;
  return [...messages, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}
