/** Finds out when the present run of a plan started, for `refit status` and everything that is made from its view. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { planEndOf } from '../../engine/assess/ended.ts';
import { factsOf } from '../../engine/gates/types.ts';
import type { Snapshot } from '../../engine/model/decision.ts';
import { startOfRun } from '../../engine/report/run-start.ts';

export interface Recorded {
  readonly snapshot: Snapshot;
  readonly now: number;
  /** The runs in the NodeRollout of the plan, the newest first; undefined if nobody asked for them or they are unknown. */
  readonly runs?: readonly NodeRolloutRun[] | undefined;
}

/** Returns the RFC 3339 time at which the present run started; undefined if no time is recorded. */
export function startOf({ snapshot, now, runs = [] }: Recorded): string | undefined {
  const { source, id } = snapshot.rollout;
  const first = firstMoment(snapshot);
  if (first === undefined) return undefined;
  // An edit after the end has started no run, even if the plan has a new id now. The last run is still the present one.
  const isEdited = planEndOf(snapshot, now).phase === 'edited';
  const last = isEdited ? runs.find(({ planUid }) => planUid === source.uid)?.id : undefined;
  return startOfRun(runs, { id: last ?? id, planUid: source.uid }, () => first);
}

/** Returns the earliest time that is recorded for a target, or at which a target was signalled. */
function firstMoment({ rollout, facts }: Snapshot): string | undefined {
  if (rollout.phase === 'new') return undefined;
  const created = Date.parse(rollout.source.created);
  const moments = rollout.stages.flatMap(({ targets }) =>
    targets.flatMap((target) => {
      const { observation } = factsOf({ facts }, target);
      return observation.kind === 'none' ? target.since : [target.since, observation.attempt];
    }),
  );
  // A time from an earlier plan, or from a wrong clock, is not the start of this plan.
  const own = moments.filter((moment) => Date.parse(moment) >= created);
  return own.toSorted((a, b) => Date.parse(a) - Date.parse(b))[0];
}
