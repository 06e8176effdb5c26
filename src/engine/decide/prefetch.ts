/** Decides which waiting targets fetch their payload ahead, so that it is there when their turn comes. */
import { notPaused } from '../gates/not-paused.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction, Snapshot } from '../model/decision.ts';
import { activeStage, isFinal, type Stage, type Target } from '../model/recorded.ts';
import { isStopping } from './advance.ts';
import type { Evaluations } from './evaluate-target.ts';

/** Targets that hold a payload before their turn. */
const MOST_AHEAD = 20;

type Pair = readonly [Stage, Target];

/** Asks the next targets while others are in progress, and cancels what is not to come any more. */
export function prefetchesOf(evaluations: Evaluations): NodeAction[] {
  const { snapshot, policy } = evaluations;
  const stateOf = ([, target]: Pair) => factsOf(snapshot, target).prefetch;
  const pairs = snapshot.rollout.stages
    .flatMap((stage) => stage.targets.map((target): Pair => [stage, target]))
    .filter((pair) => stateOf(pair) !== undefined);
  const next = mayPrefetch(evaluations) ? pairs.filter(([, target]) => isToCome(snapshot, target)) : [];
  const asked = next.filter((pair) => stateOf(pair) === 'asked');
  const most = aheadIn(next, policy.prefetch);
  const free = isMoving(evaluations) ? Math.max(0, most - asked.length) : 0;
  const chosen = next
    .slice(0, most)
    .filter((pair) => !asked.includes(pair))
    .slice(0, free);
  const kept = new Set([...chosen, ...asked]);
  // The signal of an intended target takes it away.
  const ended = pairs.filter((pair) => stateOf(pair) !== 'possible' && !kept.has(pair) && pair[1].state !== 'intended');
  return [
    ...chosen.map(([stage, target]): NodeAction => ({ kind: 'prefetch', stage, target, agent: policy.agent })),
    ...ended.map(([stage, target]): NodeAction => ({ kind: 'end-prefetch', stage, target })),
  ];
}

function isToCome(snapshot: Snapshot, target: Target): boolean {
  return target.state === 'pending' && factsOf(snapshot, target).isThere !== true;
}

function mayPrefetch({ snapshot, policy }: Evaluations): boolean {
  const isOpen = !isFinal(snapshot.rollout) && !isStopping(snapshot, policy) && policy.problems.length === 0;
  const isPaused = notPaused.evaluate({ policy, controls: snapshot.controls }).kind !== 'pass';
  return policy.prefetch !== 'none' && isOpen && !isPaused;
}

/** Before the first target, and in a rest or a closed window, nothing is fetched. */
function isMoving({ snapshot: { rollout } }: Evaluations): boolean {
  return activeStage(rollout)?.targets.some(({ state }) => state === 'intended') === true;
}

/** As many as may move at once when the turn of the first comes, or all up to the limit. */
function aheadIn(next: readonly Pair[], prefetch: 'next' | 'all' | 'none'): number {
  const [first] = next;
  if (first === undefined) return 0;
  return prefetch === 'all' ? MOST_AHEAD : Math.min(first[0].maxInFlight, MOST_AHEAD);
}
