/** Owns the paragraph about one node of a plan: the same as of the plan, as far as it concerns that node. */
import { age } from '../phrases.ts';
import { failureLines } from '../status/sentences.ts';
import { isMoving } from '../status/stage-lines.ts';
import { stateOf, timesOf } from '../status/text.ts';
import type { PlanView, StageView, StatusView, TargetView } from '../status/view.ts';
import { adviceOf, isOpen, operationOf, progressOf, titleOf } from './plan.ts';

/** A paragraph, as sentences, for each stage that has the node among its targets. */
export function explainNode(status: StatusView, plan: PlanView, node: string, now: number): string[][] {
  return plan.stages.flatMap((stage) =>
    stage.targets
      .filter(({ name }) => name === node)
      .map((target) => [
        `${node} is a ${stage.role} of ${titleOf(plan)}, which ${stateOf(plan)}${timesOf(plan, now)}.`,
        ...sentencesOf(plan, stage, target, now),
        ...(isOpen(plan) && target.phase !== 'done' ? operationOf(status, plan, now) : []),
      ]),
  );
}

function sentencesOf(plan: PlanView, stage: StageView, target: TargetView, now: number): string[] {
  const { name, phase, since, from } = target;
  if (phase === 'done') {
    const change = from === undefined ? `has ${stage.version}` : `went from ${from} to ${stage.version}`;
    return [`It was done ${age(since, now)} ago, and ${change}.`];
  }
  const { reason, ...rest } = plan;
  const own: PlanView = {
    ...rest,
    stages: [{ ...stage, targets: [target] }],
    waits: stage.active ? plan.waits.filter((wait) => wait.target === name) : [],
    next: [],
  };
  if (phase === 'failed') return [`Why: ${failureLines(own).join('; ')}.`, adviceOf(plan)];
  const isRefused = plan.phase === 'new' && reason !== undefined;
  if (!isOpen(plan) || isRefused)
    return [`It was not begun. Why: ${reason ?? 'no reason is recorded'}.`, adviceOf(plan)];
  return isMoving(target) || own.waits.length > 0 ? progressOf(own, now) : turnOf(plan, own, stage, target, now);
}

/** Nothing that concerns it alone keeps it from starting. */
function turnOf(plan: PlanView, own: PlanView, stage: StageView, { name, since }: TargetView, now: number): string[] {
  const earlier = plan.stages.find(({ active }) => active);
  if (!stage.active && earlier) {
    return [`It waits until the ${earlier.role}s are done (for ${age(since, now)}).`];
  }
  const waits = plan.waits.filter(({ ofStage }) => ofStage === true);
  const turn = plan.next.includes(name) ? 'It is among those that start next.' : 'It waits for its turn.';
  return [...progressOf({ ...own, waits }, now), turn];
}
