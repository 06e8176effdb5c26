/**
 * Compares an ended rollout with the current plan and the current nodes. People may have edited the plan, and nodes may
 * run another version.
 */
import { onceForEach, onceForEachWith } from '../../util/memo.ts';
import { listed, listedSentences } from '../../util/phrases.ts';
import { mayBePartOf } from '../../versions/release-parts.ts';
import { factsOf, versionAsked, versionBefore } from '../gates/types.ts';
import { editedClause } from '../model/edited-clause.ts';
import type { TargetFacts } from '../model/facts.ts';
import { because, type Reason } from '../model/reasons.ts';
import {
  isFinal,
  isUpgradedByLaterStage,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
  withStages,
} from '../model/rollout.ts';
import type { PlanPhase } from '../model/shown-phases.ts';
import type { Abilities, Snapshot } from '../model/snapshot.ts';
import { nodeRetriedBy, skippedRetriedBy } from '../model/tried-again.ts';
import type { RolloutPolicy } from '../policy/rollout-policy.ts';
import { hasOneOf, refusedDownloads } from '../reasons/downloads.ts';
import { refusedVersions } from '../reasons/refused-version.ts';

export interface PlanEnd {
  readonly phase: PlanPhase;
  readonly reason?: Reason | undefined;
  /** A clause that says how the plan was edited after the end of its rollout; undefined if it was not edited. */
  readonly edit?: string | undefined;
}

/**
 * For this number of milliseconds after the end of its work, a node may still report its old version, because some
 * services restart after the work has ended.
 */
const REPORT_MS = 120_000;
const FEW = 3;
const MOST_NAMES = 8;
const ANEW = 'delete it and apply it again';
const REMEDY = `it will not run: ${ANEW}`;

/**
 * Returns the phase and the reason to show. They are the recorded phase and reason, unless the plan or the nodes
 * contradict them. `now` is in milliseconds.
 */
export function planEndOf(snapshot: Snapshot, now: number): PlanEnd {
  return endAt(snapshot, String(now));
}

/**
 * The end of the plan is computed once for each snapshot, because the computation reads all targets, and status, Events, conditions and
 * metrics ask for it.
 */
const endAt = onceForEachWith((snapshot: Snapshot, now) => endOf(snapshot, Number(now)));

function endOf(snapshot: Snapshot, now: number): PlanEnd {
  const { rollout } = snapshot;
  const { phase, reason, stages } = rollout;
  if (!isFinal(rollout) || rollout.unread) return { phase, reason };
  const ofVersion = editedVersion(snapshot);
  const wasRunning = ofVersion !== undefined && snapshot.plan.edits?.isAfterEnd === false;
  const edit =
    rollout.edit ??
    (wasRunning ? undefined : ofVersion) ??
    correctedVersion(rollout) ??
    correctedDownload(rollout) ??
    changedSpec(snapshot);
  if (edit !== undefined) return { phase: 'edited', reason: edited(snapshot, edit), edit };
  if (wasRunning) return endWithMixedVersions(snapshot);
  if (phase !== 'done') return { phase, reason };
  const behind = targetsBehind(snapshot, now);
  if (behind !== undefined) return { phase: 'differs', reason: behind };
  if (stages.some(({ targets }) => targets.length > 0)) return { phase, reason };
  return { phase: 'empty', reason: reason ?? NOTHING_DONE };
}

export const NOTHING_DONE = because('NoTargets', 'there was no target, so nothing was done');

function edited({ rollout, abilities }: Snapshot, edit: string): Reason {
  return because('EditedAfterEnd', `${editedClause(edit)}; ${remedyOfEdit(rollout, abilities)}`);
}

function remedyOfEdit(rollout: Rollout, abilities: Abilities): string {
  const { retriedBy } = abilities;
  if (retriedBy !== undefined) return `it will not run by itself: ${retriedBy}`;
  // A retry continues the plan as it is now, so the edit also applies to the nodes that had not started.
  if (targetsIn(rollout, 'failed').length > 0)
    return `${REMEDY}, or retry a failed node (${nodeRetriedBy(abilities)}), which carries out the edited plan on all nodes that are not done`;
  if (targetsIn(rollout, 'skipped').length > 0)
    return `it will not run by itself: ${ANEW}, or retry the nodes that were left out (${skippedRetriedBy(abilities)}), which carries out the edited plan on these nodes only`;
  return REMEDY;
}

/**
 * Returns the end of the plan for people. If a leader starts the edited plan again by itself, the reason says so, and has
 * no other advice.
 */
export function shownEndOf(snapshot: Snapshot, policy: RolloutPolicy, now: number): PlanEnd {
  const end = planEndOf(snapshot, now);
  if (end.edit === undefined || !isRestartDue(snapshot, policy, now)) return end;
  const message = `${editedClause(end.edit)}; the leader starts it again, as edits.afterEnd of UpgradePolicy ${policy.name} says`;
  return { ...end, reason: because('EditedAfterEnd', message) };
}

/**
 * Returns true if the policy lets an edit of an ended plan start a new rollout, and that rollout
 * has not begun yet. An aborted plan does not start again.
 */
export function isRestartDue(
  snapshot: Snapshot,
  { restartsEdited }: RolloutPolicy,
  now: number,
): boolean {
  return (
    restartsEdited &&
    snapshot.plan.edits?.isNew === true &&
    snapshot.plan.controls.abort === undefined &&
    planEndOf(snapshot, now).phase === 'edited'
  );
}

function changedSpec({ plan: { edits }, rollout }: Snapshot): string | undefined {
  if (edits?.isAfterEnd !== true) return undefined;
  const { id, editedId } = rollout;
  return editedId === undefined
    ? 'its spec has changed since'
    : `it ran with the id ${id} and now has the id ${editedId}`;
}

/**
 * Returns the end of a rollout whose version was edited while it ran. The nodes that were done before the edit keep the
 * version that the plan named then.
 */
function endWithMixedVersions({ rollout, targets, plan: { controls } }: Snapshot): PlanEnd {
  const { phase, reason } = rollout;
  const upgraded = withStages(rollout).flatMap(({ stage, target }) => {
    return target.state === 'done'
      ? [{ name: target.name, asked: versionAsked(factsOf({ targets }, target), stage) }]
      : [];
  });
  const byVersion = Map.groupBy(upgraded, ({ asked }) => asked);
  const lists = [...byVersion].map(
    ([version, targets]) =>
      `${version} on ${listed([...new Set(targets.map(({ name }) => name))], MOST_NAMES)}`,
  );
  const installed = lists.length === 0 ? '' : `, and installed ${lists.join(', and ')}`;
  const edited = `was edited while it ran${installed}`;
  if (phase !== 'done' && reason !== undefined) {
    const clause = lists.length > 1 ? `the plan is mixed: it ${edited}` : `the plan ${edited}`;
    return { phase, reason: { ...reason, message: `${reason.message}; ${clause}` } };
  }
  const { abort } = controls;
  const aborted = abort === undefined ? '' : ` and somebody aborted it (${abort})`;
  return {
    phase: 'differs',
    reason: because('MixedVersions', `the plan has ended${aborted}: it ${edited}`),
  };
}

/**
 * Returns a clause that says how the version was edited; undefined if it was not edited. The signals show which version
 * the plan required when it ran.
 */
function editedVersion(snapshot: Snapshot): string | undefined {
  // An empty version proves no edit: the stages of an invalid plan may lack their version.
  const edit = signalledVersions(snapshot).find(({ asked, now }) => now !== '' && asked !== now);
  return edit && `it was carried out with ${edit.asked} and now says ${edit.now}`;
}

/** A version that targets were signalled with, and the version that the plan asks for now in their stage. */
interface SignalledVersion {
  readonly asked: string;
  readonly now: string;
}

/**
 * Returns the versions of the signals of the run, each once for each stage. They are found once for each snapshot,
 * because that reads all targets.
 */
export const signalledVersions = onceForEach(
  ({ rollout, targets }: Snapshot): readonly SignalledVersion[] =>
    rollout.stages.flatMap((stage) => {
      const asked = stage.targets.flatMap((target) => factsOf({ targets }, target).asked ?? []);
      return [...new Set(asked)].map((version) => ({ asked: version, now: stage.version }));
    }),
);

/**
 * Returns a clause which says that the plan was refused because of its version, and that the plan now asks for another
 * version. Returns undefined if the plan still asks for the refused version.
 */
function correctedVersion({ phase, reason, stages }: Rollout): string | undefined {
  const refused = phase === 'invalid' ? reason && refusedVersions(reason) : undefined;
  const versions = stages.map(({ version }) => version).filter((version) => version !== '');
  const isSame = versions.some((version) => refused?.includes(version) === true);
  if (refused === undefined || versions.length === 0 || isSame) return undefined;
  return `it was refused for another version than ${listed([...new Set(versions)])}`;
}

/**
 * Returns a clause that says that the plan was refused because of a download, and that it no longer has this download;
 * undefined if the plan still has the download. Also undefined if the plan has no downloads any more, because then the
 * change cannot be detected.
 */
function correctedDownload({ phase, reason, stages }: Rollout): string | undefined {
  const isRefused = phase === 'invalid' && reason?.code === 'Unverified';
  const hasDownloads = stages.some(({ payloads = {} }) => Object.keys(payloads).length > 0);
  return isRefused && hasDownloads && !hasOneOf(refusedDownloads(reason), stages)
    ? 'the download that was refused has been replaced'
    : undefined;
}

function targetsBehind(snapshot: Snapshot, now: number): Reason | undefined {
  const behind = withStages(snapshot.rollout).filter(({ stage, target }) =>
    isLastingBehind(snapshot, stage, target, now),
  );
  const sentences = behind.map(({ stage, target }) => {
    const facts = factsOf(snapshot, target);
    const brought = versionAsked(facts, stage);
    return `${target.name} runs ${facts.version}, although the plan brought it to ${brought}`;
  });
  return sentences.length === 0
    ? undefined
    : because('VersionDiffers', listedSentences(sentences, FEW));
}

/**
 * Returns the time in RFC 3339 at which the target ended: the recorded time, or the time that its
 * node reports if that is later. A leader of another product records the time of the signal, which
 * is before the end.
 */
export function lastMoment(
  { state, since }: Target,
  { observation }: Pick<TargetFacts, 'observation'>,
): string {
  const ending = state === 'done' ? 'succeeded' : 'failed';
  const isSaid = observation.kind === ending && (state === 'done' || state === 'failed');
  return isSaid && Date.parse(observation.since) > Date.parse(since) ? observation.since : since;
}

/** Returns the last time at which a target ended, in milliseconds since the Unix epoch; -Infinity if no target has such a time. */
export function lastEndOf(snapshot: Snapshot): number {
  const moments = withStages(snapshot.rollout).map(({ target }) =>
    timeIn(lastMoment(target, factsOf(snapshot, target))),
  );
  return Math.max(Number.NEGATIVE_INFINITY, ...moments);
}

/** Returns the time in milliseconds since the Unix epoch; -Infinity for a text that is no time. */
export function timeIn(text: string): number {
  const time = Date.parse(text);
  return Number.isNaN(time) ? Number.NEGATIVE_INFINITY : time;
}

/** Returns true if the target runs an older version than its plan asks for, and has had the time to report its new version. */
export function isLastingBehind(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  now: number,
): boolean {
  return isBehind(snapshot, stage, target) && hasHadTime(snapshot, target, now);
}

/**
 * Returns true if the target has just been upgraded, and its object still shows another version. Then nobody knows
 * which version it runs.
 */
export function mayReportLate(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  now: number,
): boolean {
  const facts = factsOf(snapshot, target);
  if (target.state !== 'done' || facts.version === undefined) return false;
  const from = versionBefore(facts);
  const isNew = mayBePartOf(facts.version, versionAsked(facts, stage));
  // A version that is neither the new one nor the earlier one was installed by somebody else.
  if (isNew || (from !== undefined && !mayBePartOf(facts.version, from))) return false;
  return !hasHadTime(snapshot, target, now);
}

function hasHadTime(snapshot: Snapshot, target: Target, now: number): boolean {
  return now - Date.parse(lastMoment(target, factsOf(snapshot, target))) >= REPORT_MS;
}

/**
 * Returns true if the target runs an older version than its plan asks for. If several stages name the target, only the last of them
 * counts.
 */
function isBehind(snapshot: Snapshot, stage: Stage, target: Target): boolean {
  return (
    factsOf(snapshot, target).isBehind && !isUpgradedByLaterStage(snapshot.rollout, stage, target)
  );
}
