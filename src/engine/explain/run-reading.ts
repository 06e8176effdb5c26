/** Reads the present run of a plan: its times, the versions that its nodes ran before, and what they download. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import type { Assessment } from '../assess/assess.ts';
import { lastMoment, planEndOf } from '../assess/ended.ts';
import { factsOf } from '../gates/types.ts';
import { runOf } from '../model/decisions-of-people.ts';
import { isFinal, type Rollout, type RolloutPhase, withStages } from '../model/rollout.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { type RunSnapshot, snapshotsSince } from './run-snapshots.ts';
import { endOfRun, type NamedRun, startOfRun } from './run-times.ts';
import {
  downloadsSince,
  type RunVersions,
  runVersions,
  versionsBeforeSince,
} from './run-versions.ts';

/** The earliest and the latest time in the record of a rollout, in RFC 3339. */
export type RunSpan = Readonly<Record<'first' | 'last', string>>;

/** The run of a plan. Its methods read every target, so callers ask only for what they show. */
export interface RunReading {
  readonly id: string;
  /** The run as `<uid of its plan>/<id>`. */
  readonly name: string;
  /** The phase in the record. What people see may differ, because a plan can be edited after its end. */
  readonly recorded: RolloutPhase;
  /**
   * Returns true if the plan was admitted: it runs, or work was done for one of its targets. A plan that ended at its
   * admission, because it was refused or aborted, never began.
   */
  hasBegun(): boolean;
  /** Returns the earliest and the latest time in the record alone. */
  span(): RunSpan;
  /**
   * Returns the RFC 3339 time at which the run started: the recorded time, or else the earliest time at which a target
   * was signalled, or began to wait.
   */
  started(): string;
  /**
   * Returns the RFC 3339 time at which the run ended; undefined if it has not ended, or if the time is unknown. It is the
   * recorded time, or else the time of the last target.
   */
  ended(): string | undefined;
  versions(): RunVersions;
  /** Returns the `earlier` record of the versions before the run, with the builds that nodes have reported since. */
  versionsSince(earlier: RunVersions['before']): RunVersions['before'];
  /** Returns the downloads of the run, including its `earlier` downloads. */
  downloadsSince(earlier: RunVersions['downloads']): RunVersions['downloads'];
  /** Returns the snapshots of etcd of the run, including its `earlier` snapshots. */
  snapshotsSince(earlier?: readonly RunSnapshot[]): RunSnapshot[] | undefined;
}

/**
 * Returns the run; undefined before the rollout is recorded. `runs` are the runs in the NodeRollout of the plan, the
 * newest first, if the reader has asked for them.
 */
export function readRun(
  { snapshot, now }: Assessment,
  runs: readonly NodeRolloutRun[] = [],
): RunReading | undefined {
  const { rollout } = snapshot;
  if (rollout.phase === 'new') return undefined;
  const recorded = { snapshot, now, runs };
  return {
    id: rollout.id,
    name: runOf(rollout),
    recorded: rollout.phase,
    hasBegun: () => hasBegun(snapshot),
    span: () => spanOf(rollout),
    started: () =>
      startOfRun(runs, presentRun(recorded), { first: () => firstMoment(snapshot), now }),
    ended: () => endOf(recorded),
    versions: () => runVersions(snapshot),
    versionsSince: (earlier) => versionsBeforeSince(snapshot, earlier),
    downloadsSince: (earlier) => downloadsSince(rollout, earlier),
    snapshotsSince: (earlier) => snapshotsSince(snapshot, earlier),
  };
}

function hasBegun(snapshot: Snapshot): boolean {
  const { rollout } = snapshot;
  if (!isFinal(rollout)) return true;
  return withStages(rollout).some(({ target }) => {
    switch (target.state) {
      case 'intended':
      case 'done':
      case 'skipped':
        return true;
      case 'failed':
        return factsOf(snapshot, target).observation.kind !== 'none';
      case 'pending':
      case 'missing':
      case 'unsupported':
        return false;
    }
  });
}

function spanOf(rollout: Rollout): RunSpan {
  const { created } = rollout.source;
  let first: string | undefined;
  let last: string | undefined;
  for (const { target } of withStages(rollout)) {
    if (first === undefined || Date.parse(target.since) < Date.parse(first)) first = target.since;
    if (last === undefined || Date.parse(target.since) > Date.parse(last)) last = target.since;
  }
  return { first: first ?? created, last: last ?? created };
}

interface RecordedRuns {
  readonly snapshot: Snapshot;
  readonly now: number;
  readonly runs: readonly NodeRolloutRun[];
}

function endOf(recorded: RecordedRuns): string | undefined {
  const { snapshot, runs } = recorded;
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  const { reason } = rollout;
  if (!isFinal(rollout)) return undefined;
  const targets = rollout.stages.flatMap((stage) => stage.targets);
  const known = endOfRun(runs, presentRun(recorded));
  // An abort ends a run later than its last target, and only the NodeRollout knows when.
  const isAborted = controls.abort !== undefined && reason?.code === 'Aborted';
  if (known === undefined && isAborted) return undefined;
  const moments = targets.map((target) => lastMoment(target, factsOf(snapshot, target)));
  // A run that was retried may have ended again since the record was written.
  return [...moments, ...(known === undefined ? [] : [known])]
    .toSorted((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);
}

/** An edit after the end has started no run, even if the plan has a new id now. The last run is still the present one. */
function presentRun({ snapshot, now, runs }: RecordedRuns): NamedRun {
  const { source, id } = snapshot.rollout;
  const isEdited = planEndOf(snapshot, now).phase === 'edited';
  const last = isEdited ? runs.find(({ planUid }) => planUid === source.uid)?.id : undefined;
  return { id: last ?? id, planUid: source.uid };
}

/**
 * Returns the earliest time at which a target was signalled, or began to wait. If a target has ended and nothing says
 * when it was signalled, returns the time at which the plan was created.
 */
function firstMoment(snapshot: Snapshot): string {
  const { rollout } = snapshot;
  const { created } = rollout.source;
  const moments = rollout.stages.flatMap(({ targets }) =>
    targets.flatMap((target) => {
      const { observation } = factsOf(snapshot, target);
      // The recorded time of a target that has ended is its end.
      const isOpen = target.state === 'pending' || target.state === 'intended';
      const recorded = isOpen ? target.since : created;
      if (observation.kind === 'none') return recorded;
      return isOpen ? [recorded, observation.attempt] : observation.attempt;
    }),
  );
  // A time from an earlier plan, or from a wrong clock, is not the start of this plan.
  const own = moments.filter((moment) => Date.parse(moment) >= Date.parse(created));
  return own.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0] ?? created;
}
