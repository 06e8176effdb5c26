/**
 * Keeps a record of the snapshots of etcd that the controllers of a run took, because the reports of the controllers are removed. The
 * size is bounded.
 */
import { MOST, type NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { rfc3339 } from '../../util/clock.ts';
import { printable } from '../../util/printable.ts';
import { factsOf, reportOf } from '../gates/types.ts';
import type { TargetReport } from '../model/facts.ts';
import type { Snapshot } from '../model/snapshot.ts';

export type RunSnapshot = NonNullable<NodeRolloutRun['snapshots']>[number];
type Reported = NonNullable<TargetReport['etcdSnapshot']>;

const LONGEST_TEXT = 512;

/**
 * Returns the last known snapshot of each controller; undefined if there is none. Recorded snapshots in `earlier` are kept, because the
 * next signal of a controller removes its report. A failed snapshot does not replace an earlier one.
 */
export function snapshotsSince(
  snapshot: Snapshot,
  earlier: readonly RunSnapshot[] = [],
): RunSnapshot[] | undefined {
  const byNode = new Map(earlier.map((each) => [each.node, each]));
  for (const { node, ...found } of reportedIn(snapshot)) {
    if (found.path === undefined && byNode.get(node)?.path !== undefined) continue;
    byNode.set(node, { node, ...found });
  }
  const all = [...byNode.values()].slice(0, MOST.snapshots);
  return all.length === 0 ? undefined : all;
}

/** Returns the snapshots that controllers report. Reports of workers are ignored, because workers have no etcd. */
function reportedIn(snapshot: Snapshot): RunSnapshot[] {
  const controllers = snapshot.rollout.stages.filter(({ role }) => role === 'controller');
  return controllers
    .flatMap(({ targets }) => targets)
    .flatMap((target) => {
      const report = reportOf(factsOf(snapshot, target))?.etcdSnapshot;
      const found = report && recordOf(report);
      return found === undefined ? [] : [{ node: target.name, ...found }];
    });
}

/**
 * Returns the record of a reported snapshot, with only the values that the schema of the NodeRollout allows. A single
 * wrong value would make the API server refuse the whole status. Undefined if the report has no valid time, or has
 * neither a path nor a failure.
 */
function recordOf(reported: Reported): Omit<RunSnapshot, 'node'> | undefined {
  const { path, bytes, sha256 = '', failed } = reported;
  const ms = Date.parse(reported.at);
  if (!Number.isFinite(ms)) return undefined;
  const at = rfc3339(ms);
  if (path === undefined) return failed === undefined ? undefined : { at, failed: short(failed) };
  const hasSize = bytes !== undefined && Number.isSafeInteger(bytes) && bytes >= 0;
  return {
    at,
    path: short(path),
    ...(hasSize ? { bytes } : {}),
    ...(/^[0-9a-f]{64}$/.test(sha256) ? { sha256 } : {}),
  };
}

function short(text: string): string {
  return printable(text).slice(0, LONGEST_TEXT);
}
