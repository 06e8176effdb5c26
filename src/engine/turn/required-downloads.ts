/**
 * Decides which waiting targets must be asked now for the download without which they do not start, and which requests end.
 */

import { choose } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { PAYLOAD_PRESENT, pauseAfter } from '../gates/payload-pause.ts';
import { pinAgainst } from '../gates/pins.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction } from '../model/decision.ts';
import type { RequiredDownload } from '../model/downloads.ts';
import { inState, type Stage, type Target } from '../model/rollout.ts';
import { groupsOf } from '../schedule/order.ts';
import { limitOf } from '../schedule/slots.ts';
import { MOST_AHEAD, mayPrefetch } from './prefetch.ts';

/**
 * Asks the targets that wait only for their download, and the targets that are expected to start next. At most MOST_AHEAD
 * targets download or have failed to do so at the same time.
 */
export function requiredDownloadsOf(assessment: Assessment): NodeAction[] {
  const { snapshot, policy, stage, now } = assessment;
  const isWanted = stage !== undefined && snapshot.abilities.mustDownload;
  if (!isWanted || snapshot.rollout.phase !== 'running' || !mayPrefetch(assessment)) return [];
  const ready = startable(assessment, stage);
  // While something else keeps every target from starting, such as a version rule, nothing is downloaded for them.
  const isMoving = ready.length > 0 || inState(stage, 'intended').length > 0;
  if (!isMoving) return [];
  const targets = [...new Set([...ready, ...nextOf(assessment, stage)])];
  const known = targets.map((target) => ({
    target,
    state: factsOf(snapshot, target).requiredDownload,
  }));
  const open = known.filter(({ state }) => state?.kind === 'asked' || state?.kind === 'failed');
  const unasked = known.filter(({ state }) => state?.kind === 'unasked');
  const asked = unasked.slice(0, Math.max(0, MOST_AHEAD - open.length));
  const ended = known.filter(({ state }) => isOver(state, now));
  const { agent } = policy;
  return [
    ...asked.map(({ target }): NodeAction => ({ kind: 'prefetch', stage, target, agent })),
    ...ended.map(({ target }): NodeAction => ({ kind: 'end-prefetch', stage, target })),
  ];
}

/** Returns the targets that would start if they had their payload. */
function startable(assessment: Assessment, stage: Stage): readonly Target[] {
  return choose(assessment, stage).waiting.flatMap(({ gate, target }) =>
    gate === PAYLOAD_PRESENT ? target : [],
  );
}

/**
 * Returns as many targets as the policy lets download ahead, in the order in which they start. Leaves out targets that a person
 * holds. A target whose download has failed is returned in addition, because others start before it.
 */
function nextOf(assessment: Assessment, stage: Stage): readonly Target[] {
  const { snapshot, policy } = assessment;
  const limit = policy.prefetch === 'all' ? MOST_AHEAD : Math.min(limitOf(stage), MOST_AHEAD);
  const next: Target[] = [];
  let counted = 0;
  for (const target of groupsOf(assessment, stage, inState(stage, 'pending')).flat()) {
    if (counted >= limit || next.length >= 2 * MOST_AHEAD) break;
    const facts = factsOf(snapshot, target);
    if (facts.hold !== undefined || pinAgainst(policy, stage, facts) !== undefined) continue;
    next.push(target);
    if (facts.requiredDownload?.kind !== 'failed') counted++;
  }
  return next;
}

/** Returns true if the request must end, so that a later turn asks anew. */
function isOver(state: RequiredDownload | undefined, now: number): boolean {
  return (
    state?.kind === 'outdated' || (state?.kind === 'failed' && pauseAfter(state.since, now) === 0)
  );
}
