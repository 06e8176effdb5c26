/** Targets that are recorded before there is a slot for them: each starts at once when another is done, which is recorded later. */
import { sameJson } from '../../util/json.ts';
import { onceForEach } from '../../util/memo.ts';
import { type DecisionContext, factsOf } from '../gates/types.ts';
import { inState, type Rollout, type Stage, type Target, targetIn } from '../model/rollout.ts';
import { type Choice, chooseTargets } from './slots.ts';

/** The pending targets of a stage: first those that are recorded ahead. */
export const candidatesIn = onceForEach((stage: Stage): readonly Target[] => {
  const pending = inState(stage, 'pending');
  const next = nextIn(stage);
  if (next.length === 0) return pending;
  const isNext = new Set(next);
  return [...next, ...pending.filter((target) => !isNext.has(target))];
});

/** The pending targets that are recorded ahead, in the order in which they start. */
export const nextIn = onceForEach((stage: Stage): readonly Target[] =>
  [...new Set(stage.next)]
    .flatMap((key) => targetIn(stage, key) ?? [])
    .filter(({ state }) => state === 'pending'),
);

/** Which of them may start without another record, which claims. Only in their order: then two leaders never start more than there are slots. */
export function startableAhead(
  context: DecisionContext,
  stage: Stage,
  slots: number,
): readonly Target[] {
  const next = nextIn(stage).filter(
    (target) => factsOf(context.snapshot, target).observation.kind === 'none',
  );
  const { chosen } = chooseTargets(context, stage, next.slice(0, slots), slots);
  const isUnclaimed = (target: Target): boolean =>
    factsOf(context.snapshot, target).isUnclaimed?.(context.policy) === true;
  const end = chosen.findIndex((target, index) => target !== next[index] || isUnclaimed(target));
  return end < 0 ? chosen : chosen.slice(0, end);
}

/** The keys to record beside a choice of targets that start. Those of before keep their order; what a gate holds loses its place. */
export function nextAfter(
  context: DecisionContext,
  stage: Stage,
  { chosen, stopped, refusal }: Choice,
): readonly string[] {
  const { ahead = 0 } = stage;
  if (ahead === 0 || refusal || stopped.length > 0) return [];
  const left = candidatesIn(stage).filter((target) => !chosen.includes(target));
  return chooseTargets(context, stage, left, ahead).chosen.map(({ key }) => key);
}

/** The same object if nothing changes. */
export function withNext(
  rollout: Rollout,
  { id, next: before = [] }: Stage,
  next: readonly string[],
): Rollout {
  if (sameJson(before, next)) return rollout;
  return {
    ...rollout,
    stages: rollout.stages.map((stage) => (stage.id === id ? { ...stage, next } : stage)),
  };
}
