/** Explains, for people only, why targets wait that the scheduler has skipped. */

import type { DecisionContext } from '../gates/context.ts';
import type { Wait } from '../model/decided.ts';
import { isFinal, type Target } from '../model/recorded.ts';
import { activeStage } from '../model/stages.ts';
import { chooseTargets } from '../schedule/candidates.ts';
import { isStopping } from './advance.ts';
import type { Evaluations } from './evaluate-target.ts';
import { type ExplainedWait, type Explanation, explain, groupWaits } from './explain.ts';

/** Each may need a request to the API server. */
const MAX_TARGETS = 10;

/** Like `explain`, plus what skipped targets would wait for if a slot were free. */
export function explainToPeople(evaluations: Evaluations): Explanation {
  const explanation = explain(evaluations);
  const { waits, probes } = explanation;
  const names = new Set(waits.map(({ target }) => target));
  const known = new Set(waits.map(sentenceOf));
  const more = skippedWaits(evaluations);
  const added = more.filter(({ wait }) => !names.has(wait.target) && !known.has(sentenceOf(wait)));
  return {
    ...explanation,
    waits: [...waits, ...added.map(({ wait }) => wait)],
    probes: [...probes, ...more.flatMap(({ probe }) => probe ?? [])],
  };
}

function skippedWaits(context: DecisionContext): ExplainedWait[] {
  const { snapshot, policy } = context;
  const { rollout } = snapshot;
  const stage = activeStage(rollout);
  if (!stage || isFinal(rollout) || rollout.unread || isStopping(snapshot, policy)) return [];
  const waiting = skipped(stage.targets)
    .slice(0, MAX_TARGETS)
    .flatMap((target) => chooseTargets(context, stage, [target], 1).waiting)
    // `explain` has the waits of the whole rollout.
    .filter(({ ofRollout }) => ofRollout !== true)
    .map((refused) => ({ ...refused, since: refused.since ?? refused.target.since }));
  return groupWaits(stage, waiting);
}

/** Pending, although a later target has started. */
function skipped(targets: readonly Target[]): readonly Target[] {
  const last = targets.findLastIndex(({ state }) => state !== 'pending');
  return targets.slice(0, Math.max(0, last)).filter(({ state }) => state === 'pending');
}

function sentenceOf({ gate, reason }: Wait): string {
  return `${gate} ${reason.message}`;
}
