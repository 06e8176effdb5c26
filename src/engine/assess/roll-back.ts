/** Decides whether the leader rolls back a failed run because of `onFailure: RollBack` in the policy. */

import type { KubeObject } from '../../kube/resources.ts';
import { listed, listedSentences } from '../../util/phrases.ts';
import { because, type Reason } from '../model/reasons.ts';
import { isFinal } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { refusalsOf } from './advance.ts';
import { describeUsedUpBudget } from './budget.ts';
import { planEndOf } from './ended.ts';

/**
 * Whether the leader rolls back the run. ahead: the rollout continues, and would be rolled back if it failed · ask: the
 * NodeRollout must be read · wait: the end of the run is not recorded yet, or the API server did not answer · delayed:
 * it is unknown which versions the targets run · paused: people paused the plan or the policy · due: the plan must be
 * written now · refused: the leader must not roll the run back, so the plan has stopped.
 */
export type RollBackVerdict =
  | { readonly kind: 'ahead' | 'ask' | 'wait' | 'paused' }
  | { readonly kind: 'delayed'; readonly awaits: string; readonly leftMs: number }
  | { readonly kind: 'due'; readonly plan: KubeObject; readonly reason: Reason }
  | { readonly kind: 'refused'; readonly reason: Reason };

const MOST_NAMES = 8;

/**
 * Returns the verdict; undefined if the policy does not request a roll-back, or if the rollout did not end because of
 * its failures.
 */
export function rollBackVerdict(
  snapshot: Snapshot,
  policy: RolloutPolicy,
  now: number,
): RollBackVerdict | undefined {
  const { rollout } = snapshot;
  const { controls, rollBack, decisions } = snapshot.plan;
  if (policy.rollsBackOnFailure !== true || controls.abort !== undefined) return undefined;
  const isOver = isFinal(rollout);
  if (isOver && !endedByFailures(snapshot, policy, now)) return undefined;
  if (rollout.rollsBack !== undefined)
    return refused(policy, 'this run itself rolls an earlier run back');
  if (typeof rollBack === 'object' && 'byHand' in rollBack) return refused(policy, rollBack.byHand);
  if (!isOver) return { kind: 'ahead' };
  if (controls.paused || policy.paused) return { kind: 'paused' };
  if (decisions.kind === 'unasked' || decisions.kind === 'never') return { kind: 'ask' };
  if (decisions.kind === 'unanswered' || rollBack === undefined || rollBack === 'unrecorded')
    return { kind: 'wait' };
  if ('awaits' in rollBack) return { kind: 'delayed', ...rollBack };
  if ('obstacle' in rollBack) return refused(policy, rollBack.obstacle);
  const refusals = snapshot.plan.ofRollBack
    ? refusalsOf({ snapshot: snapshot.plan.ofRollBack(), policy, now })
    : [];
  if (refusals.length > 0) return refused(policy, refusalSentence(refusals));
  const why = describeUsedUpBudget(snapshot, policy)?.message ?? 'the plan failed';
  const going = listed(rollBack.names, MOST_NAMES);
  const message = `the policy ${policy.name}: ${why}; run ${rollout.id} is rolled back on ${going}`;
  return { kind: 'due', plan: rollBack.plan, reason: because('RollsBack', message) };
}

const FEW = 3;

/** Returns the reasons for which a leader would refuse the plan that rolls a run back, as one sentence. */
export function refusalSentence(refusals: readonly Reason[]): string {
  const messages = [...new Set(refusals.map(({ message }) => message))];
  return `the leader would refuse the plan that goes back: ${listedSentences(messages, FEW)}`;
}

function refused({ name }: RolloutPolicy, obstacle: string): RollBackVerdict {
  const message = `onFailure: RollBack of UpgradePolicy ${name} acts as Stop: ${obstacle}`;
  return { kind: 'refused', reason: because('RollBackRefused', message) };
}

/**
 * Returns true if the rollout ended because its budget was used up. Returns false after a later edit or an abort, because then people have
 * decided what happens to the plan.
 */
function endedByFailures(snapshot: Snapshot, policy: RolloutPolicy, now: number): boolean {
  const { rollout } = snapshot;
  if (rollout.phase !== 'failed' || rollout.unread || rollout.reason?.code === 'Aborted')
    return false;
  if (planEndOf(snapshot, now).phase !== 'failed') return false;
  return describeUsedUpBudget(snapshot, policy) !== undefined;
}
