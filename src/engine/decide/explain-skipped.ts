/** Explains, for people only, why targets wait that the scheduler has skipped. */

import type { DecisionContext } from '../gates/context.ts';
import type { Wait } from '../model/decided.ts';
import { isFinal, type Target } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { chooseTargets } from '../schedule/candidates.ts';
import { isStopping } from './advance.ts';
import type { Evaluations } from './evaluate-target.ts';
import { type ExplainedWait, type Explanation, explain, heldBy } from './explain.ts';

/** Each may cost a request to the API server. */
const MOST_TARGETS = 10;

/** As `explain`, and what skipped targets would wait for if a slot were free. */
export function explainToPeople(evaluations: Evaluations): Explanation {
  const explanation = explain(evaluations);
  const { waits, probes } = explanation;
  const names = new Set(waits.map(({ target }) => target));
  const words = new Set(waits.map(wordsOf));
  const passed = skipped(evaluations);
  const news = passed.filter(({ wait }) => !names.has(wait.target) && !words.has(wordsOf(wait)));
  return {
    ...explanation,
    waits: [...waits, ...news.map(({ wait }) => wait)],
    probes: [...probes, ...passed.flatMap(({ probe }) => probe ?? [])],
  };
}

function skipped(context: DecisionContext): ExplainedWait[] {
  const { snapshot, policy } = context;
  const { rollout } = snapshot;
  const stage = activeStage(rollout);
  if (!stage || isFinal(rollout) || rollout.unread || isStopping(snapshot, policy)) return [];
  const waiting = overtaken(stage.targets)
    .slice(0, MOST_TARGETS)
    .flatMap((target) => chooseTargets(context, stage, [target], 1).waiting)
    // `explain` has those that hold for all targets.
    .filter(({ ofRollout }) => ofRollout !== true)
    .map((refused) => ({ ...refused, since: refused.since ?? refused.target.since }));
  return heldBy(stage, waiting);
}

/** Pending, although a later target has started. */
function overtaken(targets: readonly Target[]): readonly Target[] {
  const last = targets.findLastIndex(({ state }) => state !== 'pending');
  return targets.slice(0, Math.max(0, last)).filter(({ state }) => state === 'pending');
}

function wordsOf({ gate, reason }: Wait): string {
  return `${gate} ${reason.message}`;
}
