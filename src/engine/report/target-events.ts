/** Owns the story of each node: what is told on its own object when its target begins, is done, fails or is stopped. */
import { formatDuration } from '../../util/duration.ts';
import { isLarge } from '../act/status-shards.ts';
import { progressOf } from '../decide/evaluate-target.ts';
import { factsOf } from '../gates/context.ts';
import type { NodeAction, Signalling } from '../model/decided.ts';
import type { Snapshot } from '../model/observed.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Stage, Target } from '../model/recorded.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import type { Announcement } from './plan-events.ts';

/** What is told on the object that stands for the target. */
export interface TargetAnnouncement extends Announcement {
  readonly stage: Stage;
  readonly target: Target;
}

/** What is told on a Node, named. */
export interface ClearingAnnouncement extends Announcement {
  readonly node: string;
}

/** Of what is recorded now and was not before: `snapshot` is what the record was decided on. */
export function targetEvents(
  snapshot: Snapshot,
  after: Rollout,
  policy: RolloutPolicy,
  now: number,
): TargetAnnouncement[] {
  const before = new Map(snapshot.rollout.stages.flatMap(({ targets }) => targets.map((it) => [it.key, it.state])));
  return after.stages.flatMap((stage) =>
    stage.targets
      .filter(({ key, state }) => before.get(key) !== state)
      .flatMap((target) => ending(snapshot, stage, target, policy, now) ?? []),
  );
}

function ending(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  policy: RolloutPolicy,
  now: number,
): TargetAnnouncement | undefined {
  if (target.state === 'done') {
    return isQuiet(snapshot.rollout)
      ? undefined
      : { type: 'Normal', reason: doneReason(snapshot, stage, target), stage, target };
  }
  if (target.state !== 'failed') return undefined;
  const recorded = snapshot.rollout.stages.flatMap(({ targets }) => targets).find(({ key }) => key === target.key);
  const { reason } = progressOf(snapshot, stage, recorded ?? target, policy, now);
  return { type: 'Warning', reason, stage, target };
}

function doneReason(snapshot: Snapshot, { version }: Stage, target: Target): Reason {
  const { observation } = factsOf(snapshot, target);
  const { from, spent } = observation.kind === 'none' ? {} : (observation.report ?? {});
  const took = Object.values(spent ?? {}).reduce((sum, ms) => sum + ms, 0);
  const before = from === undefined ? '' : ` (before: ${from})`;
  return because('Completed', `is at ${version}${before}${took > 0 ? ` after ${formatDuration(took)}` : ''}`);
}

export function signalEvents(rollout: Rollout, signals: readonly Signalling[]): TargetAnnouncement[] {
  if (isQuiet(rollout)) return [];
  return signals.map(({ stage, target }) => {
    const message = `told to go to ${stage.version} by ${rollout.source.kind} ${rollout.source.name}`;
    return { type: 'Normal', reason: because('Signalled', message), stage, target };
  });
}

/** Once it is carried out: whoever is stopped, or whose pods are about to go, is told so, however many there are. */
export function nodeActionEvents(rollout: Rollout, nodeAction: NodeAction): TargetAnnouncement[] {
  const { kind, name } = rollout.source;
  const { stage, target } = nodeAction;
  if (nodeAction.kind === 'cancel') return [{ type: 'Warning', reason: nodeAction.reason, stage, target }];
  // Not the cordon: the node's own agent may have set it already.
  if (nodeAction.kind !== 'drain' || isQuiet(rollout)) return [];
  const reason = because('Draining', `is drained for ${kind} ${name}: its pods are being evicted`);
  return [{ type: 'Normal', reason, stage, target }];
}

/** Where the plan is gone the Node alone can tell what becomes of it. A taint is not worth a word. */
export function cleanUpEvents({ reason }: Rollout, nodeAction: NodeAction): ClearingAnnouncement[] {
  const { node } = nodeAction;
  if (node === undefined || !reason) return [];
  if (nodeAction.kind === 'cancel') return [{ type: 'Warning', reason, node }];
  const lifts = (nodeAction.kind === 'clean-up' && nodeAction.cordon) || nodeAction.kind === 'acknowledge';
  if (!lifts) return [];
  return [{ type: 'Normal', reason: because(reason.code, `is uncordoned: ${reason.message}`), node }];
}

/** Of very many nodes only what goes wrong is told: an event for every step would be more than a server minds. */
const isQuiet = isLarge;
