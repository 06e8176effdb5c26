/** Makes the Events about a plan and its targets, from what was recorded before and what is recorded now. */
import { formatDuration } from '../../util/duration.ts';
import { counted, listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import type { Assessment } from '../assess/assess.ts';
import { includedReason } from '../assess/joined-targets.ts';
import { outcomeOf } from '../assess/outcome.ts';
import { workOn } from '../explain/work-on.ts';
import { factsOf, hadVersionBefore, reportOf, versionAsked } from '../gates/types.ts';
import { describeOpening, isTimetableOpen, openingFor } from '../gates/window-open.ts';
import type { NodeAction, Signalling, Wait } from '../model/decision.ts';
import { because, type Reason, type ReportedEvent } from '../model/reasons.ts';
import {
  isFinal,
  type Rollout,
  shownRole,
  stateChanges,
  targetsIn,
  withStages,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { isLarge } from '../model/status-shards.ts';
import { unverifiedDownloads } from '../reasons/downloads.ts';
import type { AwaitedRetry } from '../schedule/awaited-retries.ts';

type OfTarget = Pick<Signalling, 'stage' | 'target'>;

/** An Event about the object that represents the target. */
export type TargetEvent = ReportedEvent & OfTarget;

/**
 * Returns an Event for each target whose recorded state changed. `assessment` is the assessment that led to the record.
 */
export function targetEvents(assessment: Assessment, after: Rollout): TargetEvent[] {
  const { snapshot } = assessment;
  return stateChanges(snapshot.rollout, after).flatMap(
    ({ stage, target, before = target }): TargetEvent[] => {
      if (target.state !== 'failed' && target.state !== 'done') return [];
      const lost = removalEvents(snapshot, { stage, target });
      if (target.state === 'failed') {
        const { reason } = assessment.of(stage, before);
        return [...lost, { type: 'Warning', reason, stage, target }];
      }
      if (isLarge(snapshot.rollout)) return lost;
      const reason = doneReason(snapshot, { stage, target });
      return [...lost, { type: 'Normal', reason, stage, target }];
    },
  );
}

/**
 * Returns an Event for each binary or bundle that the agent removed to make room for the download. Large rollouts also
 * get these Events.
 */
function removalEvents(snapshot: Snapshot, { stage, target }: OfTarget): TargetEvent[] {
  const facts = factsOf(snapshot, target);
  const version = versionAsked(facts, stage);
  const { removed, removedBundle } = reportOf(facts) ?? {};
  const event = (code: 'KeptBinaryRemoved' | 'KeptBundleRemoved', what: string): TargetEvent => {
    const message = `The agent removed ${what}, because the disk had no room for it and the download of ${version}`;
    return { type: 'Warning', reason: because(code, message), stage, target };
  };
  return [
    ...(removedBundle === undefined
      ? []
      : [event('KeptBundleRemoved', `the airgap bundle of ${printable(removedBundle)}`)]),
    ...(removed === undefined
      ? []
      : [event('KeptBinaryRemoved', `the kept ${printable(removed)}`)]),
  ];
}

function doneReason(snapshot: Snapshot, { stage, target }: OfTarget): Reason {
  const facts = factsOf(snapshot, target);
  const version = versionAsked(facts, stage);
  const had = hadVersionBefore(facts, stage);
  const { from, spent } = reportOf(facts) ?? {};
  const took = Object.values(spent ?? {}).reduce((sum, ms) => sum + ms, 0);
  const before = from === undefined ? '' : ` (from ${from})`;
  if (had)
    return because(
      'Completed',
      `Runs ${version}, as before${took > 0 ? `; the attempt took ${formatDuration(took)}` : ''}`,
    );
  const done =
    stage.keepsVersion === true
      ? `Prepared for ${version}`
      : `${DONE[workOn(snapshot, stage, target)]} to ${version}${before}`;
  return because('Completed', `${done}${took > 0 ? ` in ${formatDuration(took)}` : ''}`);
}

const DONE = { upgrade: 'Upgraded', 'roll-back': 'Rolled back' } as const;

const STARTED = { upgrade: 'Upgrade to', 'roll-back': 'Roll-back to' } as const;

/** Returns an Event for each signal; none for a large rollout, because an Event for every step would load the API server. */
export function signalEvents(snapshot: Snapshot, signals: readonly Signalling[]): TargetEvent[] {
  const { rollout } = snapshot;
  if (isLarge(rollout)) return [];
  return signals.map(({ stage, target }) => {
    const what =
      stage.keepsVersion === true ? 'Preparation for' : STARTED[workOn(snapshot, stage, target)];
    const message = `${what} ${stage.version} started (${rollout.source.kind} ${rollout.source.name})`;
    return { type: 'Normal', reason: because('Signalled', message), stage, target };
  });
}

/** Returns the Events about a node action. A cancelled signal is always reported, even in a large rollout. */
export function nodeActionEvents(rollout: Rollout, nodeAction: NodeAction): TargetEvent[] {
  const { kind, name } = rollout.source;
  const { stage, target } = nodeAction;
  if (nodeAction.kind === 'cancel')
    return [{ type: 'Warning', reason: nodeAction.reason, stage, target }];
  // The drain gets an Event and the cordon does not, because the node's own agent may have cordoned the node already.
  if (nodeAction.kind !== 'drain' || isLarge(rollout)) return [];
  const reason = because('Draining', `Draining for ${kind} ${name}: evicting pods`);
  return [{ type: 'Normal', reason, stage, target }];
}

/** Returns the Events on Nodes whose plan was deleted. The removal of a taint gets no Event. */
export function cleanUpEvents(
  { reason }: Rollout,
  nodeAction: NodeAction,
): (ReportedEvent & { node: string })[] {
  const { node } = nodeAction;
  if (node === undefined || !reason) return [];
  if (nodeAction.kind === 'cancel') return [{ type: 'Warning', reason, node }];
  const uncordons =
    (nodeAction.kind === 'clean-up' && nodeAction.cordon) || nodeAction.kind === 'acknowledge';
  if (!uncordons) return [];
  return [{ type: 'Normal', reason: because(reason.code, `Uncordoned: ${reason.message}`), node }];
}

/** Returns the Events about a plan. `waits` are the waits of the rollout as it is recorded now. */
export function planEvents(
  before: Rollout,
  after: Rollout,
  waits: readonly Wait[] = [],
): ReportedEvent[] {
  const events: ReportedEvent[] = [];
  if (before.phase === 'new' && after.phase === 'running') {
    const stages = after.stages.filter(({ targets }) => targets.length > 0).length;
    const message = `${counted(withStages(after).length, 'target')} in ${counted(stages, 'stage')}`;
    events.push({ type: 'Normal', reason: because('Started', message) });
    events.push(...emptySelectionEvents(after));
    const unverified = unverifiedDownloads(after.stages);
    if (unverified !== undefined) events.push({ type: 'Warning', reason: unverified });
  }
  if (before.phase === 'running' && after.phase === 'running')
    events.push(...includedEvents(before, after));
  // The recorded message was made printable before it was written. So the other message is also made printable before
  // both are compared.
  const shown = before.reason && printable(before.reason.message);
  if (after.reason && shown !== printable(after.reason.message))
    events.push({ type: 'Warning', reason: after.reason });
  if (after.blocked && !before.blocked) events.push(...blockedEvents(after, waits));
  if (before.blocked && !after.blocked) events.push(...resumedEvents(before, after));
  if (isFinal(after) && !isFinal(before)) events.push(...endEvents(before, after));
  return events;
}

/** Returns one Event about the nodes that were added to the rollout after it began. */
function includedEvents(before: Rollout, after: Rollout): ReportedEvent[] {
  const known = new Set(withStages(before).map(({ target }) => target.name));
  const names = withStages(after).flatMap(({ target: { name } }) => (known.has(name) ? [] : name));
  if (names.length === 0) return [];
  return [{ type: 'Normal', reason: includedReason(...new Set(names)) }];
}

/**
 * Returns one Event if a slot is free but a gate blocks the pending targets. It has the message that `refit status`
 * shows.
 */
function blockedEvents(rollout: Rollout, waits: readonly Wait[]): ReportedEvent[] {
  const pending = new Set(targetsIn(rollout, 'pending').map(({ name }) => name));
  const blocked = waits.find(({ target }) => target !== undefined && pending.has(target));
  return blocked ? [{ type: 'Warning', reason: blocked.reason }] : [];
}

function resumedEvents(before: Rollout, after: Rollout): ReportedEvent[] {
  const pending = new Set(targetsIn(before, 'pending').map(({ key }) => key));
  const names = targetsIn(after, 'intended').flatMap(({ key, name }) =>
    pending.has(key) ? [name] : [],
  );
  if (names.length === 0) return [];
  return [
    {
      type: 'Normal',
      reason: because('Resumed', `No longer blocked: starting ${listed(names, 1)}`),
    },
  ];
}

/** Returns the Event about targets that start because a person opened the maintenance window; none if a window of the policy is open. */
export function openingEvents(
  { snapshot, policy, now }: Assessment,
  after: Rollout,
): ReportedEvent[] {
  const opening = openingFor(policy, snapshot.plan.controls, now);
  if (opening === undefined || isTimetableOpen(policy, now)) return [];
  const names = stateChanges(snapshot.rollout, after)
    .filter(({ target }) => target.state === 'intended')
    .map(({ target }) => target.name);
  if (names.length === 0) return [];
  const message = `Starting ${listed(names, 1)}: ${describeOpening(opening, policy)}`;
  return [{ type: 'Normal', reason: because('WindowOpened', message) }];
}

function everyTargetDone(count: number): string {
  return count === 1 ? 'the target is done' : `all ${count} targets are done`;
}

/**
 * Returns the Event about the end of a plan. Returns no Event if the reason was reported already. This applies to a
 * refused plan, and to a plan that ended with failures within its budget.
 */
function endEvents(before: Rollout, after: Rollout): ReportedEvent[] {
  const count = withStages(after).length;
  const done = targetsIn(after, 'done').length;
  const completed =
    done === count ? everyTargetDone(count) : `${done} of ${count} targets are done`;
  if (after.phase === 'done')
    return count === 0 ? [] : [{ type: 'Normal', reason: because('Completed', completed) }];
  if (before.phase === 'new' || after.reason?.code === 'DoneWithFailures') return [];
  return [
    {
      type: 'Warning',
      reason: because(
        'Stopped',
        `the plan ended before all targets were done: ${outcomeOf(after)}`,
      ),
    },
  ];
}

/** Returns a warning for each selector that matches nothing, because that is often a mistake. */
function emptySelectionEvents({ stages }: Rollout): ReportedEvent[] {
  return stages
    .filter(({ targets, selection }) => targets.length === 0 && selection !== undefined)
    .map((stage) => {
      const { command, selection } = stage;
      const message = `spec.commands[${command}] has no ${shownRole(stage)}s: nothing matches ${selection}`;
      return { type: 'Warning', reason: because('NoTargets', message) };
    });
}

/** Returns an Event for each target that is tried again because of the policy with this name. */
export function retryEvents(
  policy: string | undefined,
  retries: readonly AwaitedRetry[],
): TargetEvent[] {
  return retries.map(({ stage, target, attempt, of }) => {
    const message = `Attempt ${attempt} of ${of} after a failure, as retry of UpgradePolicy ${policy} says`;
    return { type: 'Normal', reason: because('Retried', message), stage, target };
  });
}

/** Returns the Event about an edited plan that starts again. `how` is a clause about the edit. */
export function restartEvent(how: string): ReportedEvent {
  const message = `the plan was edited after it ended (${how}), so it starts again, as edits.afterEnd of its policy says`;
  return { type: 'Normal', reason: because('RestartedAfterEdit', message) };
}
