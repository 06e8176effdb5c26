/** Chooses the targets to signal: only recorded intents are signalled, after their Nodes are marked for other tools. */
import { ownMember } from '../../util/own-member.ts';
import type { Assessment } from '../assess/assess.ts';
import { factsOf } from '../gates/types.ts';
import type { Signalling } from '../model/decision.ts';
import { inState, isFinal, ownerOf, type Stage, type Target } from '../model/rollout.ts';
import { protectionOf } from './protect-nodes.ts';

/**
 * Returns the signals of this turn; empty if the rollout is over, or while a part of its record
 * cannot be read.
 */
export function signalsOf(assessment: Assessment): Signalling[] {
  const { snapshot, stage } = assessment;
  if (!stage || isFinal(snapshot.rollout) || snapshot.rollout.unread) return [];
  return inState(stage, 'intended')
    .filter((target) => assessment.of(stage, target).effect === 'signal')
    .filter((target) => protectionOf(assessment, stage, target) === undefined)
    .flatMap((target) => signalFor(assessment, stage, target));
}

function signalFor({ snapshot, policy }: Assessment, stage: Stage, target: Target): Signalling[] {
  const { node, platform = '' } = factsOf(snapshot, target);
  const owner = ownerOf(snapshot.rollout, target);
  const found = node?.unschedulable === true && node.cordonOwner === undefined;
  const cordon = { cordonFor: owner, ...(found ? { foundCordoned: true as const } : {}) };
  const agent = node && policy.drain.enabled ? { ...policy.agent, ...cordon } : policy.agent;
  if (!stage.payloads) return [{ stage, target, agent }];
  const payload = ownMember(stage.payloads, platform);
  return payload ? [{ stage, target, payload, agent }] : [];
}
