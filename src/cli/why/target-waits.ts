/** Finds what a single target waits for: the cause comes first, also if it is the wait of another target. */

import { isRoutine } from '../../engine/explain/routine-waits.ts';
import type { Wait } from '../../engine/model/decision.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import { because } from '../../engine/model/reasons.ts';
import { isNamedIn, retold } from '../../engine/reasons/about-target.ts';
import { approvalEnds, needsApproval } from '../../engine/reasons/wave-approval.ts';
import { onceForEach } from '../../util/memo.ts';
import type { ShownPlan, StageJson, TargetJson } from '../status/json-form.ts';
import * as sentences from '../status/sentences.ts';

/**
 * Returns the waits of the target. If the target has no waits and is not in progress, returns the waits of its stage or
 * of an earlier stage. The cause comes first: what the nodes before the target wait for. The last wait is the approval
 * of the target's own wave.
 */
export function waitsOf(
  plan: ShownPlan,
  { active }: StageJson,
  target: TargetJson,
): readonly Wait[] {
  const { waits, ofStages } = namesIn(plan);
  const own = active ? (waits.get(target.name) ?? []) : [];
  if (sentences.isMoving(target)) return own;
  const found = own.length > 0 ? own : ofStages.filter((wait) => active || !isRoutine(wait));
  const causes = new Set(found.flatMap(({ after = [] }) => after)).difference(
    new Set([target.name]),
  );
  const first = [...causes].flatMap((name) => (waits.get(name) ?? []).filter(isCause));
  return [
    ...first.filter((wait) => !found.includes(wait)).map(withName),
    ...found.map((wait) => waitIn(wait, target)),
    ...approvalOf(plan, target, found),
  ];
}

/** Returns true if the wait is neither about the order nor about work that makes progress. */
export function isCause(wait: Wait): boolean {
  return wait.after === undefined && !isRoutine(wait);
}

/** Returns the wait of another target with the name of that target in its message. */
function withName(wait: Wait): Wait {
  const { target = '', reason } = wait;
  return isNamedIn(target, reason.message)
    ? wait
    : { ...wait, reason: { ...reason, message: `${target} waits: ${reason.message}` } };
}

/** Returns the wait for earlier targets in words about `target`, because it names only the first target that waits. */
function waitIn(wait: Wait, { name }: TargetJson): Wait {
  const { target, after, reason } = wait;
  if (after === undefined || target === undefined || target === name) return wait;
  return { ...wait, target: name, reason: retold(reason, target, name) };
}

/** Returns the wait for the approval of the target's wave, unless a wait that was found is about it. */
function approvalOf(plan: ShownPlan, { wave, since }: TargetJson, found: readonly Wait[]): Wait[] {
  const isOpen = wave !== undefined && plan.unapproved?.includes(wave) === true;
  if (!isOpen || found.some(({ unapproved }) => unapproved === wave)) return [];
  return [
    {
      gate: 'waves',
      reason: because('WaveNeedsApproval', needsApproval(wave, plan.policy)),
      ends: approvalEnds(planReference(plan), wave),
      since,
      unapproved: wave,
    },
  ];
}

/**
 * Returns the waits by target, the waits of stages, and the names of the next targets. The result is computed once for
 * each plan, so that `refit why` does not search these lists for each of thousands of targets.
 */
export const namesIn = onceForEach(({ waits, next }: ShownPlan) => ({
  waits: Map.groupBy(waits, ({ target }) => target),
  ofStages: waits.filter(({ ofStage }) => ofStage === true),
  next: new Set(next),
}));
