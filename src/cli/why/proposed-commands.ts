/** Chooses the commands that `refit why` proposes, because they end what a plan or a node waits for. */
import { planReference } from '../../engine/model/plan-reference.ts';
import type { ShownPlan } from '../status/json-form.ts';
import * as sentences from '../status/sentences.ts';
import * as text from '../status/text.ts';

/** Returns a line with the commands that end what the plan waits for; no line if there are none. */
export function startsOf(plan: ShownPlan): string[] {
  if (!text.isOpen(plan) || plan.abort !== undefined || text.isRefused(plan)) return [];
  // While the plan is paused, only the end of the pause is proposed, because no other command lets a node start.
  const helpful = plan.paused === undefined ? helpfulCommands(plan) : [];
  return helpful.length === 0 ? [] : [helpful.join(', ')];
}

/** The most commands that the output proposes. */
const MOST_PROPOSED = 4;

/** The reasons of waits that do not prevent another target from starting when people release it. */
const OF_OTHERS: ReadonlySet<string> = new Set(['Held', 'Pinned', 'EarlierNodes']);

/** Returns the commands that end what the plan waits for, in the order of its waits. */
function helpfulCommands(plan: ShownPlan): string[] {
  const name = planReference(plan);
  const isIdle = sentences.movingNames(plan).size === 0;
  // The end of a hold helps only if nothing else keeps the held target from starting.
  const isBlocked = plan.waits.some(
    (wait) =>
      wait.uncordon !== undefined ||
      (wait.ofStage === true && !sentences.isRoutine(wait) && !OF_OTHERS.has(wait.reason.code)),
  );
  const commands = plan.waits.flatMap(({ target, unapproved, uncordon, reason: { code } }) => {
    if (uncordon !== undefined) return [`kubectl uncordon ${uncordon.join(' ')}`];
    if (unapproved !== undefined) return [`refit approve ${name} --wave ${unapproved}`];
    if (code === 'Held' && target !== undefined && isIdle)
      return isBlocked ? [] : [`refit unhold ${target}`];
    if (code === 'WindowClosed' || code === 'WindowTooShort')
      return [`refit start ${name} --now --for 2h`];
    return code === 'Blackout' ? [`refit start ${name} --now --for 2h --blackouts`] : [];
  });
  return [...new Set(commands)].slice(0, MOST_PROPOSED);
}
