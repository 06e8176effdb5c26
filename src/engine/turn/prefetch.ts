/** Decides which waiting targets fetch their payload ahead, so that it is there when their turn comes. */
import { openAt } from '../../util/maintenance-windows.ts';
import type { Assessment } from '../assess/assess.ts';
import { touchedIn } from '../assess/evaluate-target.ts';
import { targetsToCheck } from '../gates/checked-targets.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import { isFinal, type Stage, type Target } from '../model/rollout.ts';
import { groupsOf } from '../schedule/order.ts';

/** Targets that hold a payload before their turn. */
const MOST_AHEAD = 20;
/** In a lead time they begin within this share of it. */
const SPREAD = 0.01;

type Pair = readonly [Stage, Target];

/** Asks the next targets while others are in progress, and cancels what is not to come any more. */
export function prefetchesOf(assessment: Assessment): NodeAction[] {
  const { snapshot, policy } = assessment;
  const stateOf = (target: Target) => factsOf(snapshot, target).prefetch;
  const pairs = touchedIn(snapshot).flatMap(({ stage, targets }) => {
    const able = targets.filter((target) => stateOf(target) !== undefined);
    return groupsOf(assessment, able).flatMap((all) => all.map((one): Pair => [stage, one]));
  });
  if (pairs.length === 0) return [];
  const isToCome = (target: Target): boolean =>
    target.state === 'pending' && factsOf(snapshot, target).isThere !== true;
  const next = mayPrefetch(assessment) ? pairs.filter(([, target]) => isToCome(target)) : [];
  const asked = next.filter(([, target]) => stateOf(target) === 'asked');
  const leftMs = beforeWindow(assessment);
  const isEarly = leftMs > 0;
  // As many as may move at once when the turn of the first comes, or all up to the limit.
  const isAll = isEarly || policy.prefetch === 'all';
  const most = isAll ? MOST_AHEAD : Math.min(next[0]?.[0].maxInFlight ?? 0, MOST_AHEAD);
  const turns = isEarly ? most : turnsIn(assessment, next);
  const free = Math.max(0, Math.min(most, turns) - asked.length);
  const unasked = next.slice(0, most).filter((pair) => !asked.includes(pair));
  const chosen = unasked.slice(0, free);
  const kept = new Set([...chosen, ...asked]);
  // The signal of an intended target takes it away.
  const isOver = ([, target]: Pair) =>
    stateOf(target) !== 'possible' && target.state !== 'intended';
  const ended = pairs.filter((pair) => isOver(pair) && !kept.has(pair));
  const agent = isEarly ? { ...policy.agent, spreadMs: Math.round(leftMs * SPREAD) } : policy.agent;
  return [
    ...chosen.map(([stage, target]): NodeAction => ({ kind: 'prefetch', stage, target, agent })),
    ...ended.map(([stage, target]): NodeAction => ({ kind: 'end-prefetch', stage, target })),
  ];
}

/** Asks agents, before the first target starts, whether they can download what the plan names. */
export function downloadChecksOf({ snapshot, policy, isStopping }: Assessment): NodeAction[] {
  if (snapshot.rollout.phase !== 'running' || isStopping || policy.problems.length > 0) return [];
  return targetsToCheck(snapshot)(policy)
    .filter(({ downloads }) => downloads.answer === 'unasked')
    .map(({ stage, target }) => ({ kind: 'check-downloads', stage, target, agent: policy.agent }));
}

function mayPrefetch({ snapshot, policy, isStopping }: Assessment): boolean {
  const isOpen = !isFinal(snapshot.rollout) && !isStopping && policy.problems.length === 0;
  const isPaused = policy.paused || snapshot.controls.paused;
  return policy.prefetch !== 'none' && isOpen && !isPaused;
}

/** Milliseconds until the window in the lead time of the plan, so that the window is spent on upgrades; 0 at other times. */
function beforeWindow({ policy: { planWindows, planLeadMs = 0 }, now }: Assessment): number {
  const opening = planWindows && openAt({ windows: planWindows, blackouts: [] }, now);
  const leftMs = opening?.open === false ? opening.opensAt - now : 0;
  return leftMs <= planLeadMs ? leftMs : 0;
}

/** How many targets may hold a payload now: each that restarts lets one fetch, also one of the next stage. */
function turnsIn({ snapshot, policy, stage }: Assessment, [first]: readonly Pair[]): number {
  const parts = (stage?.targets ?? []).map((target) => {
    const { observation } = factsOf(snapshot, target);
    return target.state === 'intended' && observation.kind === 'working'
      ? observation.part
      : undefined;
  });
  const restarting = parts.filter((part) => part === 'restart' || part === 'ready').length;
  // Those that swap come first: the service of each is about to be away.
  const turns = restarting - parts.filter((part) => part === 'apply').length;
  const isPaired = policy.prefetch === 'next' && first?.[0] === stage;
  return isPaired || turns <= 0 ? turns : Infinity;
}
