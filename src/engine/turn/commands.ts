/** Derives the commands of one turn, which are data, from the assessment. */
import type { KubeObject } from '../../kube/resources.ts';
import { ownMember } from '../../util/own-member.ts';
import { settle } from '../assess/advance.ts';
import type { Assessment } from '../assess/assess.ts';
import { isRestartDue, lastEndOf } from '../assess/ended.ts';
import { needsOf } from '../assess/needs.ts';
import { type RollBackVerdict, rollBackVerdict } from '../assess/roll-back.ts';
import { factsOf } from '../gates/types.ts';
import type { NodeAction, Probe, Signalling } from '../model/decision.ts';
import type { Reason } from '../model/reasons.ts';
import {
  inState,
  isFinal,
  ownerOf,
  type Rollout,
  type Stage,
  type Target,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { dueRetries, type RetryOrder } from '../schedule/awaited-retries.ts';
import { batchMs } from './batching.ts';
import { areClaimsDue } from './choose-claims.ts';
import { type HooksCommand, hooksOf } from './choose-hooks.ts';
import { nodeActionsOf } from './choose-node-actions.ts';
import { announcementsOf } from './lifecycle-conditions.ts';
import { protectionOf } from './protect-nodes.ts';

export type Command =
  /** Orders a new run of the plan, which was edited after it ended. */
  | { readonly kind: 'restart' }
  /** Writes the plan that rolls a failed run back, and orders a run of this plan. */
  | {
      readonly kind: 'roll-back';
      readonly plan: KubeObject;
      readonly reason: Reason;
    }
  /** Orders the next attempt of failed targets. */
  | { readonly kind: 'retry'; readonly order: RetryOrder }
  /** Sends a probe for a fact that no watch delivers. */
  | { readonly kind: 'probe'; readonly probe: Probe }
  /** Records the rollout, and claims the Nodes of its intended targets. */
  | { readonly kind: 'record'; readonly rollout: Rollout }
  /** Signals a target whose intent is recorded. */
  | { readonly kind: 'signal'; readonly signalling: Signalling }
  | { readonly kind: 'node-action'; readonly nodeAction: NodeAction }
  /** Runs hooks in the background, and keeps the known results of other hook runs. */
  | HooksCommand
  /** Assesses the plan again after this time, if nothing happens before. */
  | { readonly kind: 'wake'; readonly afterMs: number };

/**
 * The shortest and the longest pause, in milliseconds, until the leader reads the NodeRollout again to find the
 * recorded end of a run. The end is written in the background.
 */
const RECORDED_SOON_MS = 1000;
const RECORDED_LATE_MS = 60_000;

/**
 * Returns the commands of one turn. All of them can be carried out at the same time. A command that depends on the
 * result of another command follows in a later turn: nothing is recorded before the probes are answered, and no target
 * is signalled before its intent is recorded.
 */
export function commandsFor(assessment: Assessment): readonly Command[] {
  const { snapshot, policy, now } = assessment;
  const { rollout } = snapshot;
  if (isRestartDue(snapshot, policy, now)) return [{ kind: 'restart' }];
  const back = rollBackVerdict(snapshot, policy, now);
  if (back?.kind === 'ask') return [{ kind: 'probe', probe: { kind: 'decisions' } }];
  if (back?.kind === 'due') return [{ kind: 'roll-back', plan: back.plan, reason: back.reason }];
  const settled = settle(assessment);
  const { probes, recheckAfterMs } = needsOf(settled);
  if (probes.length > 0) return probes.map((probe) => ({ kind: 'probe', probe }));
  const next = settled.snapshot.rollout;
  const isRecorded = next === rollout;
  const dueMs = isRecorded ? 0 : batchMs(rollout, next, now, snapshot.term.hasRecorded);
  if (!isRecorded && dueMs === 0) return [{ kind: 'record', rollout: next }];
  const order = isRecorded ? dueRetries(snapshot, policy, now) : undefined;
  if (order) return [{ kind: 'retry', order }];
  // The record is based on the settled assessment, so that one write contains every change that needs no new
  // information. Signals, claims and node actions are based on the assessment of the present record, for two reasons:
  // the leader must not act on changes that are not recorded yet, and must not delay work that is recorded already.
  const nodeActions = nodeActionsOf(assessment).filter(
    ({ target }) => factsOf(snapshot, target).refusal === undefined,
  );
  if (isRecorded && nodeActions.length === 0 && areClaimsDue(assessment))
    return [{ kind: 'record', rollout }];
  const wakes = [
    isRecorded ? undefined : dueMs,
    recheckAfterMs,
    rollBackMs(back, snapshot, now),
  ].filter((ms) => ms !== undefined);
  return [
    ...signalsOf(assessment).map((signalling): Command => ({ kind: 'signal', signalling })),
    ...nodeActions.map((nodeAction): Command => ({ kind: 'node-action', nodeAction })),
    ...hooksOf(assessment),
    ...wakes.map((afterMs): Command => ({ kind: 'wake', afterMs })),
  ];
}

/**
 * Returns the milliseconds until the leader checks again whether to roll the run back. The end of the run may never be
 * recorded. Therefore the leader reads the NodeRollout less often as more time passes since that end.
 */
function rollBackMs(
  back: RollBackVerdict | undefined,
  snapshot: Snapshot,
  now: number,
): number | undefined {
  if (back?.kind === 'delayed') return back.leftMs;
  if (back?.kind !== 'wait') return undefined;
  const sinceMs = now - lastEndOf(snapshot);
  return Math.min(RECORDED_LATE_MS, Math.max(RECORDED_SOON_MS, sinceMs / 10));
}

/**
 * Returns the signals of this turn; empty if the rollout is over, or if a part of its record cannot be read. A target
 * is signalled only if its intent is recorded, and only after its Node has the marks for other tools and the lifecycle
 * conditions.
 */
function signalsOf(assessment: Assessment): Signalling[] {
  const { snapshot, stage } = assessment;
  const announced = new Set(announcementsOf(assessment).map(({ node }) => node));
  if (!stage || isFinal(snapshot.rollout) || snapshot.rollout.unread) return [];
  return inState(stage, 'intended')
    .filter((target) => assessment.of(stage, target).effect === 'signal')
    .filter((target) => protectionOf(assessment, stage, target) === undefined)
    .filter((target) => !announced.has(factsOf(snapshot, target).node?.name ?? ''))
    .flatMap((target) => signallingsFor(assessment, stage, target));
}

/** Returns what to send to the target; empty if the stage has no payload for the platform of the target. */
function signallingsFor(
  { snapshot, policy }: Assessment,
  stage: Stage,
  target: Target,
): Signalling[] {
  const { node, platform = '' } = factsOf(snapshot, target);
  const owner = ownerOf(snapshot.rollout, target);
  const found = node?.unschedulable === true && node.cordonOwner === undefined;
  const cordon = { cordonFor: owner, ...(found ? { foundCordoned: true as const } : {}) };
  const agent = node && policy.drain.enabled ? { ...policy.agent, ...cordon } : policy.agent;
  if (!stage.payloads) return [{ stage, target, agent }];
  const payload = ownMember(stage.payloads, platform);
  return payload ? [{ stage, target, payload, agent }] : [];
}
