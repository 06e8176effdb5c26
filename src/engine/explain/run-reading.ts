/** Reads the present run of a plan: its times, the versions that its nodes ran before, and what they download. */
import type { Assessment } from '../assess/assess.ts';
import { runOf } from '../model/decisions-of-people.ts';
import { type Rollout, type RolloutPhase, withStages } from '../model/rollout.ts';
import { type RunSnapshot, snapshotsSince } from './run-snapshots.ts';
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
  /** The run that this run rolls back, and the text in which the plan says who wants that, and why. */
  readonly rollsBack: { readonly run: string; readonly reason: string | undefined } | undefined;
  span(): RunSpan;
  versions(): RunVersions;
  /** Returns the `earlier` record of the versions before the run, with the builds that nodes have reported since. */
  versionsSince(earlier: RunVersions['before']): RunVersions['before'];
  /** Returns the downloads of the run, including its `earlier` downloads. */
  downloadsSince(earlier: RunVersions['downloads']): RunVersions['downloads'];
  /** Returns the snapshots of etcd of the run, including its `earlier` snapshots. */
  snapshotsSince(earlier?: readonly RunSnapshot[]): RunSnapshot[] | undefined;
}

/** Returns the run; undefined before the rollout is recorded. */
export function readRun({ snapshot }: Assessment): RunReading | undefined {
  const { rollout } = snapshot;
  if (rollout.phase === 'new') return undefined;
  const { rollsBack, rollsBackReason: reason } = rollout;
  return {
    id: rollout.id,
    name: runOf(rollout),
    recorded: rollout.phase,
    rollsBack: rollsBack === undefined ? undefined : { run: rollsBack, reason },
    span: () => spanOf(rollout),
    versions: () => runVersions(snapshot),
    versionsSince: (earlier) => versionsBeforeSince(snapshot, earlier),
    downloadsSince: (earlier) => downloadsSince(rollout, earlier),
    snapshotsSince: (earlier) => snapshotsSince(snapshot, earlier),
  };
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
