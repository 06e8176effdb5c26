/** Chooses the waits that a reading for people shows, and the time at which each of them ends at the latest. */

import { rfc3339 } from '../../util/clock.ts';
import { stepEnd } from '../assess/target-deadlines.ts';
import { awaitedHook } from '../gates/hook-runs.ts';
import { factsOf } from '../gates/types.ts';
import type { Wait } from '../model/decision.ts';
import { isUnasked } from '../model/reasons.ts';
import { isFinal, type Rollout, targetsIn } from '../model/rollout.ts';
import type { TargetPhase } from '../model/shown-phases.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';

interface ShownWaitsInput {
  readonly snapshot: Snapshot;
  readonly policy: RolloutPolicy;
  /** The rollout as the controller would record it next. */
  readonly upcoming: Rollout;
}

/** Returns the waits to show. A new plan that is about to end, and a target that is about to fail, have no waits. */
export function shownWaits(
  { snapshot, upcoming, policy }: ShownWaitsInput,
  waits: readonly Wait[],
): Wait[] {
  if (snapshot.rollout.phase === 'new' && isFinal(upcoming)) return [];
  const ends = stepEnds(snapshot, policy);
  const inProgress = new Set(targetsIn(snapshot.rollout, 'intended').map(({ name }) => name));
  const failing = failingNow(snapshot.rollout, upcoming);
  return waits
    .filter(({ target }) => target === undefined || !failing.has(target))
    .map((wait) => (isVague(wait, inProgress) ? hookWait(snapshot, policy, wait) : wait))
    .filter(({ gate, reason }) => gate !== 'done' && gate !== 'failed' && !isUnasked(reason))
    .map((wait) => (wait.target === undefined ? wait : withEnd(wait, ends.get(wait.target))));
}

/**
 * Returns the names of the targets whose failure the controller would record next. They wait for nothing any more, and
 * the reading shows why they failed.
 */
function failingNow(present: Rollout, upcoming: Rollout): ReadonlySet<string> {
  const before = new Set(targetsIn(present, 'failed').map(({ key }) => key));
  const failing = targetsIn(upcoming, 'failed').filter(({ key }) => !before.has(key));
  return new Set(failing.map(({ name }) => name));
}

/** The phases of targets in progress. A wait whose gate is one of them says only that the target is in progress. */
const PHASES: ReadonlySet<string> = new Set<TargetPhase>([
  'intended',
  'signalled',
  'working',
  'verifying',
]);

/**
 * Returns true if the wait says nothing about its cause: this machine could not ask what a gate needs, or the target is
 * merely in progress. `inProgress` has the names of the targets in progress.
 */
function isVague({ gate, reason, target }: Wait, inProgress: ReadonlySet<string>): boolean {
  return isUnasked(reason) || (target !== undefined && inProgress.has(target) && PHASES.has(gate));
}

/**
 * Returns the wait for the hook that the leader runs now for the target of `wait`, or for the whole plan; returns
 * `wait` if no such hook runs. The leader has passed all gates before the hook, although this machine may not have the
 * answers that these gates need.
 */
function hookWait({ outside: { hooks = [] } }: Snapshot, policy: RolloutPolicy, wait: Wait): Wait {
  for (const { hook, target, state, message, since } of hooks) {
    const known = policy.hooks?.find(({ name }) => name === hook);
    if (state !== 'running' || known === undefined) continue;
    const isOfPlan = target === undefined && known.when === 'beforePlan' && isUnasked(wait.reason);
    if (!isOfPlan && (target === undefined || target !== wait.target)) continue;
    const { reason, ends } = awaitedHook(policy, known, target, message);
    const began = Number.isNaN(since) ? wait.since : rfc3339(since);
    return { ...wait, gate: 'hooks', reason, ends, since: began };
  }
  return wait;
}

/**
 * Returns the time at which the step of each target in progress ends, in milliseconds since the Unix epoch. The keys
 * are the names of the targets.
 */
function stepEnds(snapshot: Snapshot, policy: RolloutPolicy): Map<string, number> {
  const moving = targetsIn(snapshot.rollout, 'intended');
  return new Map(
    moving.map((target) => [target.name, stepEnd(target, factsOf(snapshot, target), policy)]),
  );
}

/**
 * Returns the wait with `until` set to `end`, if `until` is missing or later than `end`. `end` is the deadline of the
 * step in milliseconds since the Unix epoch. A rest keeps its own end, because it counts against no deadline.
 */
function withEnd(wait: Wait, end = Number.POSITIVE_INFINITY): Wait {
  if (wait.reason.code === 'Resting') return wait;
  const isSooner = Date.parse(wait.until ?? '') <= end;
  if (isSooner || !Number.isFinite(end)) return wait;
  return { ...wait, until: rfc3339(end) };
}
