/**
 * Makes the status of a NodeRollout from the reading of the plan and the previous status, which has what depends on
 * earlier turns, such as the history of runs.
 */

import { LONGEST } from '../../api/crd.ts';
import {
  LONGEST_MESSAGE,
  MOST,
  type NodeRollout,
  type NodeRolloutRun,
  type NodeRolloutStatus,
} from '../../api/refit/node-rollout.ts';
import type { Delivery } from '../../notify/receivers.ts';
import { type Conditions, type ConditionUpdate, withCondition } from '../../runtime/conditions.ts';
import type { NodeSilence, SilenceState } from '../../silences/keeper.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import { listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import type { FailedTarget, PlanReading } from '../explain/plan-reading.ts';
import { type Eta, percentOf } from '../explain/progress.ts';
import { holdingOf } from '../explain/remarkable-waits.ts';
import { endOpenRuns, startOfRun } from '../explain/run-times.ts';
import type { Target } from '../model/rollout.ts';
import { isOpenPlan } from '../model/shown-phases.ts';
import { conditionsOf } from './conditions.ts';
import { checksShown, steadyChecks } from './shown-checks.ts';
import { hooksShown, withEarlierFailures } from './shown-hooks.ts';
import { silencesShown } from './shown-silences.ts';

type Failures = NonNullable<NodeRolloutRun['failures']>;

/** What a NodeRollout shows: the reading of the plan, and what the leader knows about servers outside of the cluster. */
export interface Shown {
  readonly reading: PlanReading;
  readonly outside?: Outside | undefined;
}

/** What the leader shows about servers outside of the cluster: receivers, Alertmanager and the collector of traces. */
export interface Outside {
  /** Says whether the receivers of the policy accept messages; undefined if the policy has no receivers. */
  readonly delivery?: Delivery | undefined;
  /** Whether alerts are silenced; undefined if no alert needs a silence. */
  readonly silencing?: SilenceState | undefined;
  /** The silences for the nodes in progress. */
  readonly silences?: readonly NodeSilence[] | undefined;
  /** The id of the trace of the run; undefined if no traces are sent. */
  readonly traceId?: string | undefined;
}

/**
 * The minimum change of the expected end, in milliseconds, that leads to a new write. The expected end changes a little
 * in each turn.
 */
const SMALL_MS = 60_000;
const LONGEST_VERSION = 512;
/**
 * The maximum number of characters in the name of the run that another run rolls back. Anybody who may write the plan
 * can write this name.
 */
const LONGEST_NAMED_RUN = LONGEST.reason;

function failuresOf({ failures }: PlanReading['findings']): Failures {
  return failures.map((failed) =>
    defined({
      node: failed.name,
      reason: failed.cause?.code,
      message: textOfFailure(failed),
    }),
  );
}

/** Returns why the target failed, as a text; undefined if nobody knows it. */
export function textOfFailure({ state, cause }: FailedTarget): string | undefined {
  const message = cause?.message ?? WITHOUT_WORDS[state];
  return message === undefined ? undefined : clipped(message);
}

const WITHOUT_WORDS: Partial<Record<Target['state'], string>> = {
  missing: 'it does not exist',
  unsupported: 'the plan has no download for its platform, or its node refuses the plan',
};

/**
 * Returns the failures of a run. A leader that took over does not know why a target failed in an earlier term, so the
 * reason that the run shows already stays.
 */
function withEarlierReasons(failures: Failures, before: Failures = []): Failures {
  return failures.map((failure) =>
    failure.message === undefined
      ? (before.find(({ node }) => node === failure.node) ?? failure)
      : failure,
  );
}

/**
 * Returns the status that shows `reading` at `now`, in milliseconds. `previous` is the NodeRollout as it was read or
 * written last.
 */
export function statusOf(
  { reading, outside = {} }: Shown,
  previous: NodeRollout | undefined,
  now: number,
): NodeRolloutStatus {
  const { end, counts, plan, findings } = reading;
  const wayBack = reading.wayBack();
  const before = previous?.status ?? {};
  // The history is kept when the plan is deleted. But the conditions of a deleted plan do not apply to a new plan with
  // the same name.
  const isSame = previous?.spec.plan.uid === plan.source.uid && before.planDeleted === undefined;
  const known = isSame ? (before.conditions ?? []) : [];
  const checks = reading.isOver ? undefined : checksShown(findings.checks);
  return defined({
    observedGeneration: previous?.metadata.generation,
    planGeneration: plan.generation,
    phase: end.phase,
    version: shownVersion(reading),
    counts,
    progress: `${counts.done}/${counts.total}`,
    percent: percentOf(counts),
    eta: steadyEta(reading.eta, isSame ? before.eta : undefined, now),
    wave: currentWave(reading),
    waiting: waitingOf(reading, now),
    checks: steadyChecks(checks, isSame ? before.checks : undefined),
    hooks: withEarlierFailures(hooksShown(findings.hooks), isSame ? before.hooks : undefined, () =>
      findings.settled(),
    ),
    silences: silencesShown(outside.silences, isSame ? before.silences : undefined),
    wayBack: wayBack && { ...wayBack, message: clipped(wayBack.message) },
    conditions: [...conditionsAt({ reading, outside }, known, previous?.metadata.generation, now)],
    history: historyOf({ reading, outside }, before.history ?? [], now),
  });
}

/** Returns the versions of the plan as one text. */
export function shownVersion({ versions }: Pick<PlanReading, 'versions'>): string {
  return clipped(versions.join(', '), LONGEST_VERSION);
}

/** Returns the first wave with a target that has not ended. If several stages have waves, the first of them counts that is not over. */
function currentWave(reading: PlanReading): NodeRolloutStatus['wave'] {
  if (reading.isOver || reading.run === undefined) return undefined;
  const open = reading.waves().find(({ planned, ended }) => ended < planned);
  return open && { current: open.ended + 1, total: open.planned };
}

/**
 * Returns the estimate, with the time at which it was made. A reader can tell from this time that the leader has died
 * since, because only a leader removes an estimate. An earlier estimate that is nearly the same stays as it is.
 */
function steadyEta(
  next: Eta | undefined,
  before: NodeRolloutStatus['eta'],
  now: number,
): NodeRolloutStatus['eta'] {
  if (next === undefined) return undefined;
  const made = { ...next, asOf: rfc3339(now) };
  if (before === undefined) return made;
  const isClose = (['at', 'earliest', 'latest'] as const).every(
    (key) => Math.abs(Date.parse(next[key]) - Date.parse(before[key])) < SMALL_MS,
  );
  return isClose ? before : made;
}

function waitingOf({ waits, end }: PlanReading, now: number): NodeRolloutStatus['waiting'] {
  const isOpen = isOpenPlan(end);
  const wait = isOpen ? holdingOf(waits, now) : undefined;
  if (wait === undefined) return undefined;
  const { reason, ends, since } = wait;
  return {
    reason: reason.code,
    message: clipped(reason.message),
    ...(ends === undefined ? {} : { ends: clipped(ends) }),
    since,
  };
}

function conditionsAt(
  { reading, outside = {} }: Shown,
  known: Conditions,
  generation: number | undefined,
  now: number,
): Conditions {
  const { plan, waits, end, counts } = reading;
  const updates = conditionsOf({ ...end, source: plan.source }, waits, [], now).map(
    ({ type, status, reason = '', message = '' }): ConditionUpdate => ({
      type: type === 'Blocked' ? 'Waiting' : type,
      status,
      reason,
      message,
    }),
  );
  const progressing = updates.find(({ type }) => type === 'Progressing');
  // A plan also ends as done if it left targets out, or had none. Then not every target is done.
  const isDone = end.phase === 'done' && counts.total > 0 && counts.done === counts.total;
  const completed: ConditionUpdate = {
    type: 'Completed',
    status: isDone ? 'True' : 'False',
    reason: isDone ? 'Completed' : (progressing?.reason ?? end.phase),
    message: isDone ? doneSentence(reading) : (progressing?.message ?? `the plan is ${end.phase}`),
  };
  const { delivery, silencing } = outside;
  const told: ConditionUpdate[] = [
    ...(delivery === undefined ? [] : [toldCondition(delivery)]),
    ...(silencing === undefined ? [] : [silencedCondition(silencing)]),
  ];
  const stays = ({ type }: Conditions[number]): boolean =>
    (type !== NOTIFIED || delivery !== undefined) &&
    (type !== 'Silenced' || silencing !== undefined);
  const others = known.filter(stays);
  return withConditions(others, [...updates, completed, ...told], generation, now);
}

/** Says that every target is done, and which of them run another version or were deleted since. */
function doneSentence(reading: PlanReading): string {
  const others = reading
    .differing()
    .map(({ name, ran }) => (ran === undefined ? `${name} was deleted` : `${name} runs ${ran}`));
  const every = 'every target is done';
  return others.length === 0 ? every : `${every}; since then, ${listed([...new Set(others)])}`;
}

/** The type of the condition that a NodeRollout has while the policy of its plan has receivers. */
export const NOTIFIED = 'Notified';

function toldCondition({ isGood, message }: Delivery): ConditionUpdate {
  const status = isGood ? 'True' : 'False';
  const reason = isGood ? 'ReceiversAnswer' : 'ReceiverUnreachable';
  return { type: NOTIFIED, status, reason, message };
}

function silencedCondition({ isGood, message }: SilenceState): ConditionUpdate {
  const status = isGood ? 'True' : 'False';
  const reason = isGood ? 'AlertsSilenced' : 'AlertmanagerUnreachable';
  return { type: 'Silenced', status, reason, message };
}

function withConditions(
  known: Conditions,
  updates: readonly ConditionUpdate[],
  generation: number | undefined,
  now: number,
): Conditions {
  const described = defined({ observedGeneration: generation });
  return updates.reduce<Conditions>(
    (list, update) =>
      withCondition(list, { ...update, message: clipped(update.message), ...described }, now),
    known,
  );
}

function historyOf(
  { reading, outside = {} }: Shown,
  known: readonly NodeRolloutRun[],
  now: number,
): NodeRolloutRun[] {
  const { run, end, isOver, counts, findings } = reading;
  const { uid: planUid } = reading.plan.source;
  if (run === undefined) return endOpenRuns(known, now, planUid);
  const isThis = (entry: NodeRolloutRun): boolean =>
    entry.id === run.id && entry.planUid === planUid;
  const before = known.find(isThis);
  // An edit after the end starts no run, even if it names one by a new id, and it does not change the run that ended.
  const isEdit = end.phase === 'edited' && (before === undefined || before.ended !== undefined);
  if (isEdit) return endOpenRuns(known, now, planUid);
  const endOf = (): string => {
    const { last } = run.span();
    if (before === undefined) return last;
    const { ended = rfc3339(now) } = before;
    // Targets that were retried and ended again in one turn end the run anew.
    return Date.parse(last) > Date.parse(ended) ? last : ended;
  };
  // The versions before the run are read when the leader first sees the run, because nodes report their new versions
  // later. Afterwards a report can only make them more precise.
  const { before: versionsBefore, downloads } = before ?? run.versions();
  // An edit of a running plan is part of its run. An edit after the end of the run has not changed any node.
  const hasEnded = isOver && before?.ended !== undefined;
  const others = endOpenRuns(
    known.filter((other) => !isThis(other)),
    now,
    planUid,
  );
  const entry: NodeRolloutRun = defined({
    id: run.id,
    planUid,
    version: hasEnded ? before.version : shownVersion(reading),
    started: startOfRun(
      [...(before ? [before] : []), ...others],
      { id: run.id, planUid },
      { first: () => run.span().first, now },
    ),
    ended: isOver ? endOf() : undefined,
    phase: run.recorded,
    reason: end.reason?.code,
    message: end.reason && clipped(end.reason.message),
    counts,
    traceId: outside.traceId ?? before?.traceId,
    before: hasEnded ? versionsBefore : run.versionsSince(versionsBefore),
    rollsBack: rolledBackBy(reading),
    snapshots: run.snapshotsSince(before?.snapshots),
    downloads: hasEnded ? downloads : run.downloadsSince(downloads),
    failures:
      findings.failures.length > 0
        ? withEarlierReasons(failuresOf(findings), before?.failures)
        : undefined,
  });
  return [entry, ...others].slice(0, MOST.runs);
}

function rolledBackBy({ plan: { rollsBack } }: PlanReading): NodeRolloutRun['rollsBack'] {
  if (rollsBack === undefined) return undefined;
  const reason = rollsBack.reason && clipped(rollsBack.reason);
  return { run: clipped(rollsBack.run, LONGEST_NAMED_RUN), ...defined({ reason }) };
}

/** Returns the status after the plan was deleted. Returns the same object if the status already shows the deletion. */
export function statusOfDeleted(
  { status = {}, metadata }: NodeRollout,
  now: number,
): NodeRolloutStatus {
  if (status.planDeleted !== undefined) return status;
  const {
    eta: _eta,
    waiting: _waiting,
    wave: _wave,
    checks: _checks,
    hooks: _hooks,
    silences: _silences,
    ...kept
  } = status;
  const isOpen = status.history?.some(({ ended }) => ended === undefined) === true;
  const isUnfinished = isOpen || status.phase === 'new' || status.phase === undefined;
  const gone = { reason: 'PlanGone', message: 'the plan was deleted' };
  const known = status.conditions ?? [];
  const updates: ConditionUpdate[] = [
    { type: 'Progressing', status: 'False', ...gone },
    { type: 'Waiting', status: 'False', ...gone },
    ...(isUnfinished ? [{ type: 'Completed', status: 'False', ...gone } as const] : []),
  ];
  return {
    ...kept,
    ...defined({ observedGeneration: metadata.generation }),
    ...(isUnfinished ? { phase: 'deleted' as const } : {}),
    planDeleted: rfc3339(now),
    conditions: [...withConditions(known, updates, metadata.generation, now)],
    history: endOpenRuns(withPause(status), now),
  };
}

/** Returns the runs of a deleted plan. The newest one says whether the plan was paused. */
function withPause({ history = [], waiting }: NodeRolloutStatus): NodeRolloutRun[] {
  const [newest, ...others] = history;
  if (newest === undefined || waiting?.reason !== 'Paused') return history;
  return [{ ...newest, paused: true }, ...others];
}

function clipped(text: string, most = LONGEST_MESSAGE): string {
  const shown = printable(text);
  return shown.length <= most ? shown : `${shown.slice(0, most - 1)}…`;
}
