/**
 * Computes the status of a NodeRollout from one assessment and the previous status. The computation has two steps.
 * `viewOf` computes the present view of the plan from the assessment. `statusOf` adds the data that depend on earlier
 * turns, such as the history of runs.
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
import { printable } from '../../util/printable.ts';
import type { Assessment } from '../assess/assess.ts';
import { FAILURES } from '../assess/budget.ts';
import { type PlanEnd, planEndOf, versionAsked } from '../assess/ended.ts';
import { failureOf } from '../assess/target-failures.ts';
import { wayBackOfRollout } from '../explain/way-back.ts';
import { planHookRuns } from '../gates/hook-runs.ts';
import type { Wait } from '../model/decision.ts';
import {
  inState,
  isFinal,
  type Rollout,
  type Stage,
  type Target,
  targetsIn,
  withStages,
} from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { limitOf } from '../schedule/slots.ts';
import { settledNames } from '../turn/choose-hooks.ts';
import { conditionsOf, holdingOf, isRemarkable, type ShownRollout } from './conditions.ts';
import { type RunSnapshot, snapshotsSince } from './run-snapshots.ts';
import { endOpenRuns, startOfRun } from './run-times.ts';
import {
  downloadsSince,
  type RunVersions,
  runVersions,
  versionsBeforeSince,
} from './run-versions.ts';
import { checksShown, steadyChecks } from './shown-checks.ts';
import { hooksShown, withEarlierFailures } from './shown-hooks.ts';
import { silencesShown } from './shown-silences.ts';
import type { Turn } from './turn.ts';

type Counts = NonNullable<NodeRolloutStatus['counts']>;
type Eta = NonNullable<NodeRolloutStatus['eta']>;
type Failures = NonNullable<NodeRolloutRun['failures']>;

/** The earliest and the latest time in the record of a rollout, in RFC 3339. */
type Span = Readonly<Record<'first' | 'last', string>>;

/** The view that people get of one plan in one turn. It stays small for any number of targets. */
export interface RolloutView {
  readonly end: PlanEnd;
  readonly shown: ShownRollout;
  readonly isOver: boolean;
  /**
   * The run; undefined before the rollout is recorded. `span` and `versions` are functions, because they read every target and are called
   * only once for a run.
   */
  readonly run:
    | {
        readonly id: string;
        readonly recorded: string;
        readonly rollsBack: NodeRolloutRun['rollsBack'];
        readonly span: () => Span;
        readonly versions: () => RunVersions;
        /** Returns the `earlier` record of the versions before the run, with the builds that nodes have reported since. */
        readonly versionsSince: (earlier: RunVersions['before']) => RunVersions['before'];
        /** Returns the downloads of the run, including its `earlier` downloads. */
        readonly downloadsSince: (earlier: RunVersions['downloads']) => RunVersions['downloads'];
        /** Returns the snapshots of etcd of the run, including its `earlier` snapshots. */
        readonly snapshotsSince: (earlier?: readonly RunSnapshot[]) => RunSnapshot[] | undefined;
      }
    | undefined;
  readonly planUid: string;
  readonly planGeneration: number | undefined;
  readonly version: string;
  readonly counts: Counts;
  readonly eta: Eta | undefined;
  readonly waits: readonly Wait[];
  readonly failures: Failures;
  readonly checks: NodeRolloutStatus['checks'];
  /** The hooks that run or have failed, as this leader knows. */
  readonly hooks: NodeRolloutStatus['hooks'];
  /**
   * Returns the names of the ended targets, and the names of the runs of hooks for the whole plan that have not
   * succeeded.
   */
  readonly settled: () => readonly string[];
  readonly wayBack: NodeRolloutStatus['wayBack'];
  readonly outside: Outside;
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

/** Returns what people see of the plan. `waits` are those of the explanation of the assessment. */
export function viewOf(
  { plan, assessment }: Turn,
  waits: readonly Wait[],
  outside: Outside = {},
): RolloutView {
  const { snapshot, now } = assessment;
  const { rollout } = snapshot;
  const end = planEndOf(snapshot, now);
  const isOver = isFinal(rollout);
  const present = plan.metadata.generation;
  return {
    end,
    shown: { ...rollout, ...end },
    isOver,
    run:
      rollout.phase === 'new'
        ? undefined
        : {
            id: rollout.id,
            recorded: rollout.phase,
            rollsBack: rolledBackIn(rollout),
            span: () => spanOf(rollout),
            versions: () => runVersions(snapshot),
            versionsSince: (earlier) => versionsBeforeSince(snapshot, earlier),
            downloadsSince: (earlier) => downloadsSince(rollout, earlier),
            snapshotsSince: (earlier) => snapshotsSince(snapshot, earlier),
          },
    planUid: rollout.source.uid,
    planGeneration: isOver ? (rollout.generation ?? present) : present,
    version: clipped(versionsOf(snapshot, end).join(', '), LONGEST_VERSION),
    counts: countsOf(rollout),
    eta: etaOf(assessment, waits),
    waits,
    failures: failuresOf(snapshot),
    checks: isOver ? undefined : checksShown(snapshot.outside.health),
    hooks: hooksShown(snapshot.outside.hooks),
    settled: () => [...settledNames(rollout), ...unsucceededPlanRuns(assessment)],
    wayBack: shownWayBack(assessment),
    outside,
  };
}

/** Returns the versions of the plan. If the plan was edited after its end, these are the versions that it installed. */
function versionsOf(snapshot: Snapshot, { phase }: PlanEnd): string[] {
  const { stages } = snapshot.rollout;
  const versions =
    phase === 'edited'
      ? stages.flatMap((stage) =>
          stage.targets.map((target) => versionAsked(snapshot, stage, target)),
        )
      : stages.map(({ version }) => version);
  return [...new Set(versions)].filter((version) => version !== '');
}

function rolledBackIn({ rollsBack, rollsBackReason }: Rollout): NodeRolloutRun['rollsBack'] {
  if (rollsBack === undefined) return undefined;
  const reason = rollsBackReason && clipped(rollsBackReason);
  return { run: clipped(rollsBack, LONGEST_NAMED_RUN), ...defined({ reason }) };
}

/** Returns the names of the runs of hooks for the whole plan that have not succeeded, as far as this leader knows. */
function unsucceededPlanRuns({ snapshot, policy }: Turn['assessment']): string[] {
  const good = new Set(
    snapshot.outside.hooks?.flatMap(({ id, state }) => (state === 'succeeded' ? [id] : [])),
  );
  const runs = planHookRuns(snapshot, policy, 'beforePlan', 'afterPlan');
  return runs.map(({ id }) => id).filter((id) => !good.has(id));
}

export function countsOf(rollout: Pick<Rollout, 'stages'>): Counts {
  const count = (...states: Parameters<typeof inState>[1][]): number =>
    states.reduce(
      (sum, state) =>
        sum + rollout.stages.reduce((all, stage) => all + inState(stage, state).length, 0),
      0,
    );
  return {
    total: rollout.stages.reduce((sum, { targets }) => sum + targets.length, 0),
    done: count('done'),
    failed: count('failed'),
    inProgress: count('intended'),
    pending: count('pending'),
    skipped: count('missing', 'unsupported', 'skipped'),
  };
}

/**
 * Returns the percentage of the targets that are done. It is rounded down, so that 100 means that all targets are done.
 */
export function percentOf({ total, done }: Pick<Counts, 'total' | 'done'>): number {
  return total === 0 ? 0 : Math.floor((100 * done) / total);
}

/**
 * Returns the time at which the plan is expected to be done. Undefined if fewer than two targets have reported their
 * times, if the plan waits for something else than a slot, or if nothing is left to do.
 */
export function etaOf(assessment: Assessment, waits: readonly Wait[]): Eta | undefined {
  const { snapshot, now, isStopping } = assessment;
  const { rollout, pace } = snapshot;
  if (rollout.phase !== 'running' || isStopping || waits.some(isRemarkable)) return undefined;
  if (pace.kind !== 'measured') return undefined;
  const rounds = rollout.stages.reduce((sum, stage) => sum + roundsOf(stage), 0);
  if (rounds === 0) return undefined;
  const after = (ms: number): string => rfc3339(now + rounds * ms);
  return {
    at: after(pace.usualMs),
    earliest: after(pace.fastMs),
    latest: after(pace.mostMs),
  };
}

/** Returns how many times the slots of the stage must still be filled until all its targets have ended. */
function roundsOf(stage: Stage): number {
  const open = inState(stage, 'pending').length + inState(stage, 'intended').length;
  return Math.ceil(open / Math.max(1, limitOf(stage)));
}

function failuresOf(snapshot: Snapshot): Failures {
  return targetsIn(snapshot.rollout, ...FAILURES)
    .slice(0, MOST.failures)
    .map((target) => {
      const reason = failureOf(snapshot, target);
      const message = reason?.message ?? WITHOUT_WORDS[target.state];
      return defined({
        node: target.name,
        reason: reason?.code,
        message: message === undefined ? undefined : clipped(message),
      });
    });
}

const WITHOUT_WORDS: Partial<Record<Target['state'], string>> = {
  missing: 'it does not exist',
  unsupported: 'the plan has no download for its platform, or its node refuses the upgrade',
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

function spanOf(rollout: Rollout): Span {
  const { created } = rollout.source;
  let first: string | undefined;
  let last: string | undefined;
  for (const { target } of withStages(rollout)) {
    if (first === undefined || Date.parse(target.since) < Date.parse(first)) first = target.since;
    if (last === undefined || Date.parse(target.since) > Date.parse(last)) last = target.since;
  }
  return { first: first ?? created, last: last ?? created };
}

/**
 * Returns the status that shows `view` at `now`, in milliseconds. `previous` is the NodeRollout as it was read or written last.
 */
export function statusOf(
  view: RolloutView,
  previous: NodeRollout | undefined,
  now: number,
): NodeRolloutStatus {
  const { end, counts, version, planGeneration, planUid } = view;
  const before = previous?.status ?? {};
  // The history is kept when the plan is deleted. But the conditions of a deleted plan do not apply to a new plan with
  // the same name.
  const isSame = previous?.spec.plan.uid === planUid && before.planDeleted === undefined;
  const known = isSame ? (before.conditions ?? []) : [];
  return defined({
    observedGeneration: previous?.metadata.generation,
    planGeneration,
    phase: end.phase,
    version,
    counts,
    progress: `${counts.done}/${counts.total}`,
    percent: percentOf(counts),
    eta: steadyEta(view.eta, isSame ? before.eta : undefined),
    waiting: waitingOf(view, now),
    checks: steadyChecks(view.checks, isSame ? before.checks : undefined),
    hooks: withEarlierFailures(view.hooks, isSame ? before.hooks : undefined, view.settled),
    silences: silencesShown(view.outside.silences, isSame ? before.silences : undefined),
    wayBack: view.wayBack,
    conditions: [...conditionsAt(view, known, previous?.metadata.generation, now)],
    history: historyOf(view, before.history ?? [], now),
  });
}

function shownWayBack(assessment: Turn['assessment']): NodeRolloutStatus['wayBack'] {
  const way = wayBackOfRollout(assessment);
  return way && { ...way, message: clipped(way.message) };
}

function steadyEta(next: Eta | undefined, before: Eta | undefined): Eta | undefined {
  if (next === undefined || before === undefined) return next;
  const isClose = (['at', 'earliest', 'latest'] as const).every(
    (key) => Math.abs(Date.parse(next[key]) - Date.parse(before[key])) < SMALL_MS,
  );
  return isClose ? before : next;
}

function waitingOf({ waits, end }: RolloutView, now: number): NodeRolloutStatus['waiting'] {
  const isOpen = end.phase === 'new' || end.phase === 'running';
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
  { shown, waits, end, outside }: RolloutView,
  known: Conditions,
  generation: number | undefined,
  now: number,
): Conditions {
  const updates = conditionsOf(shown, waits, [], now).map(
    ({ type, status, reason = '', message = '' }): ConditionUpdate => ({
      type: type === 'Blocked' ? 'Waiting' : type,
      status,
      reason,
      message,
    }),
  );
  const progressing = updates.find(({ type }) => type === 'Progressing');
  const isDone = end.phase === 'done' || end.phase === 'empty';
  const completed: ConditionUpdate = {
    type: 'Completed',
    status: isDone ? 'True' : 'False',
    reason: isDone ? 'Completed' : (progressing?.reason ?? end.phase),
    message: isDone ? 'every target is done' : (progressing?.message ?? `the plan is ${end.phase}`),
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
  { run, end, isOver, planUid, version, counts, failures, outside }: RolloutView,
  known: readonly NodeRolloutRun[],
  now: number,
): NodeRolloutRun[] {
  if (run === undefined) return endOpenRuns(known, now, planUid);
  const isThis = (entry: NodeRolloutRun): boolean =>
    entry.id === run.id && entry.planUid === planUid;
  const before = known.find(isThis);
  // An edit after the end starts no run, even if it names one by a new id, and it does not change the run that ended.
  const isEdit = end.phase === 'edited' && (before === undefined || before.ended !== undefined);
  if (isEdit) return endOpenRuns(known, now, planUid);
  const endOf = (): string => (before === undefined ? run.span().last : rfc3339(now));
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
    version: hasEnded ? before.version : version,
    started: startOfRun(
      [...(before ? [before] : []), ...others],
      { id: run.id, planUid },
      { first: () => run.span().first, now },
    ),
    ended: isOver ? (before?.ended ?? endOf()) : undefined,
    phase: run.recorded,
    reason: end.reason?.code,
    message: end.reason && clipped(end.reason.message),
    counts,
    traceId: outside.traceId ?? before?.traceId,
    before: hasEnded ? versionsBefore : run.versionsSince(versionsBefore),
    rollsBack: run.rollsBack,
    snapshots: run.snapshotsSince(before?.snapshots),
    downloads: hasEnded ? downloads : run.downloadsSince(downloads),
    failures: failures.length > 0 ? withEarlierReasons(failures, before?.failures) : undefined,
  });
  return [entry, ...others].slice(0, MOST.runs);
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
    history: endOpenRuns(status.history ?? [], now),
  };
}

function clipped(text: string, most = LONGEST_MESSAGE): string {
  const shown = printable(text);
  return shown.length <= most ? shown : `${shown.slice(0, most - 1)}…`;
}
