/**
 * Decides which waiting targets download their payload in advance, so that the payload is on the node when the target
 * starts.
 */
import { openAt } from '../../util/maintenance-windows.ts';
import type { Assessment } from '../assess/assess.ts';
import { touchedIn } from '../assess/evaluate-target.ts';
import { targetsToCheck } from '../gates/checked-targets.ts';
import { pinAgainst } from '../gates/pins.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import { isFinal, type Stage, type Target } from '../model/rollout.ts';
import { groupsOf } from '../schedule/order.ts';

/** At most this many targets hold a payload before they start. */
export const MOST_AHEAD = 20;
/**
 * In the lead time of a plan, the downloads of all nodes start at different times. All of them start within this
 * fraction of the time until the window.
 */
const SPREAD = 0.01;

type Pair = readonly [Stage, Target];

/**
 * Asks the next targets to download while other targets are in progress, and cancels requests to targets that will not
 * start.
 */
export function prefetchesOf(assessment: Assessment): NodeAction[] {
  const { snapshot, policy } = assessment;
  const stateOf = (target: Target) => factsOf(snapshot, target).prefetch;
  const pairs = touchedIn(snapshot).flatMap(({ stage, targets }) => {
    const able = targets.filter((target) => stateOf(target) !== undefined);
    return groupsOf(assessment, stage, able).flatMap((all) => all.map((one): Pair => [stage, one]));
  });
  if (pairs.length === 0) return [];
  const isToCome = ([stage, target]: Pair): boolean => {
    const facts = factsOf(snapshot, target);
    const isPinned = pinAgainst(policy, stage, facts) !== undefined;
    return target.state === 'pending' && !facts.isThere && !isPinned;
  };
  const next = mayPrefetch(assessment) ? pairs.filter(isToCome) : [];
  const asked = next.filter(([, target]) => stateOf(target) === 'asked');
  const leftMs = beforeWindow(assessment);
  const isEarly = leftMs > 0;
  // By default, the number of targets that may download in advance equals the number of targets that may be in progress
  // at the same time. Before a window, and with `all`, the only limit is MOST_AHEAD.
  const isAll = isEarly || policy.prefetch === 'all';
  const most = isAll ? MOST_AHEAD : Math.min(next[0]?.[0].maxInFlight ?? 0, MOST_AHEAD);
  const places = isEarly ? most : placesIn(assessment, next);
  const free = Math.max(0, Math.min(most, places) - asked.length);
  const unasked = next.slice(0, most).filter((pair) => !asked.includes(pair));
  const chosen = unasked.slice(0, free);
  const kept = new Set([...chosen, ...asked]);
  // An intended target gets a signal, and the signal replaces the request to download. Therefore no action has to end
  // that request.
  const isOver = ([, target]: Pair) =>
    stateOf(target) !== 'possible' && target.state !== 'intended';
  const ended = pairs.filter((pair) => isOver(pair) && !kept.has(pair));
  const agent = isEarly ? { ...policy.agent, spreadMs: Math.round(leftMs * SPREAD) } : policy.agent;
  return [
    ...chosen.map(([stage, target]): NodeAction => ({ kind: 'prefetch', stage, target, agent })),
    ...ended.map(([stage, target]): NodeAction => ({ kind: 'end-prefetch', stage, target })),
  ];
}

/** Before the first target starts, asks agents whether they can download the files that the plan names. */
export function downloadChecksOf({ snapshot, policy, isStopping }: Assessment): NodeAction[] {
  if (snapshot.rollout.phase !== 'running' || isStopping || policy.problems.length > 0) return [];
  return targetsToCheck(snapshot)(policy)
    .filter(({ downloads }) => downloads.answer === 'unasked')
    .map(({ stage, target }) => ({ kind: 'check-downloads', stage, target, agent: policy.agent }));
}

/** Returns true if the plan and its policy let targets download before they start. */
export function mayPrefetch({ snapshot, policy, isStopping }: Assessment): boolean {
  const isOpen = !isFinal(snapshot.rollout) && !isStopping && policy.problems.length === 0;
  const isPaused = policy.paused || snapshot.plan.controls.paused;
  return policy.prefetch !== 'none' && isOpen && !isPaused;
}

/**
 * Returns the milliseconds until the next window if the plan is in its lead time; 0 at other times. Because of
 * downloads in the lead time, the whole window is available for upgrades.
 */
function beforeWindow({ policy: { planWindows, planLeadMs = 0 }, now }: Assessment): number {
  const opening = planWindows && openAt({ windows: planWindows, blackouts: [] }, now);
  const leftMs = opening?.open === false ? opening.opensAt - now : 0;
  return leftMs <= planLeadMs ? leftMs : 0;
}

/**
 * Returns how many waiting targets may hold a downloaded payload now. Each target that restarts allows one more target to download, even a
 * target of the next stage.
 */
function placesIn({ snapshot, policy, stage }: Assessment, [first]: readonly Pair[]): number {
  const parts = (stage?.targets ?? []).map((target) => {
    const { observation } = factsOf(snapshot, target);
    return target.state === 'intended' && observation.kind === 'working'
      ? observation.part
      : undefined;
  });
  const restarting = parts.filter((part) => part === 'restart' || part === 'ready').length;
  // Targets that replace their files are subtracted, because their services are about to restart.
  const places = restarting - parts.filter((part) => part === 'apply').length;
  const isPaired = policy.prefetch === 'next' && first?.[0] === stage;
  return isPaired || places <= 0 ? places : Infinity;
}
