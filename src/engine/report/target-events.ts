/** Events of targets: an upgrade starts, drains, completes, fails or is cancelled. */
import { formatDuration } from '../../util/duration.ts';
import { isLarge } from '../act/status-shards.ts';
import type { Evaluations } from '../decide/evaluate-target.ts';
import { factsOf } from '../gates/context.ts';
import type { NodeAction, Signalling } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/recorded.ts';
import { stateChanges } from '../model/stages.ts';
import type { ReportedEvent } from './plan-events.ts';

/** On the object that stands for the target. */
export interface TargetEvent extends ReportedEvent {
  readonly stage: Stage;
  readonly target: Target;
}

/** On a Node, by name. */
export interface NodeEvent extends ReportedEvent {
  readonly node: string;
}

/** For each target whose recorded state changed; `evaluations` are those that the record was decided on. */
export function targetEvents(evaluations: Evaluations, after: Rollout): TargetEvent[] {
  const { snapshot } = evaluations;
  return stateChanges(snapshot.rollout, after).flatMap(({ stage, target, before = target }): TargetEvent[] => {
    if (target.state === 'failed')
      return [{ type: 'Warning', reason: evaluations.of(stage, before).reason, stage, target }];
    if (target.state !== 'done' || isQuiet(snapshot.rollout)) return [];
    return [{ type: 'Normal', reason: doneReason(snapshot, stage, target), stage, target }];
  });
}

function doneReason(snapshot: Snapshot, { version }: Stage, target: Target): Reason {
  const { observation } = factsOf(snapshot, target);
  const { from, spent } = observation.kind === 'none' ? {} : (observation.report ?? {});
  const took = Object.values(spent ?? {}).reduce((sum, ms) => sum + ms, 0);
  const before = from === undefined ? '' : ` (from ${from})`;
  return because('Completed', `Upgraded to ${version}${before}${took > 0 ? ` in ${formatDuration(took)}` : ''}`);
}

export function signalEvents(rollout: Rollout, signals: readonly Signalling[]): TargetEvent[] {
  if (isQuiet(rollout)) return [];
  return signals.map(({ stage, target }) => {
    const message = `Upgrade to ${stage.version} started (${rollout.source.kind} ${rollout.source.name})`;
    return { type: 'Normal', reason: because('Signalled', message), stage, target };
  });
}

/** A cancelled signal is always reported, even in a large rollout. */
export function nodeActionEvents(rollout: Rollout, nodeAction: NodeAction): TargetEvent[] {
  const { kind, name } = rollout.source;
  const { stage, target } = nodeAction;
  if (nodeAction.kind === 'cancel') return [{ type: 'Warning', reason: nodeAction.reason, stage, target }];
  // Not the cordon: the node's own agent may have set it already.
  if (nodeAction.kind !== 'drain' || isQuiet(rollout)) return [];
  const reason = because('Draining', `Draining for ${kind} ${name}: evicting pods`);
  return [{ type: 'Normal', reason, stage, target }];
}

/** Events on Nodes whose plan is gone. Removing a taint needs none. */
export function cleanUpEvents({ reason }: Rollout, nodeAction: NodeAction): NodeEvent[] {
  const { node } = nodeAction;
  if (node === undefined || !reason) return [];
  if (nodeAction.kind === 'cancel') return [{ type: 'Warning', reason, node }];
  const uncordons = (nodeAction.kind === 'clean-up' && nodeAction.cordon) || nodeAction.kind === 'acknowledge';
  if (!uncordons) return [];
  return [{ type: 'Normal', reason: because(reason.code, `Uncordoned: ${reason.message}`), node }];
}

/** A large rollout reports only failures: an Event for every step would load the API server. */
const isQuiet = isLarge;
