/** Finds out when the present run of a plan started and ended, for `refit status` and everything that is made from its view. */
import type { NodeRolloutRun } from '../../api/refit/node-rollout.ts';
import { lastMoment, planEndOf } from '../../engine/assess/ended.ts';
import { factsOf } from '../../engine/gates/types.ts';
import { isFinal } from '../../engine/model/rollout.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import { endOfRun, type NamedRun, startOfRun } from '../../engine/report/run-times.ts';

export interface Recorded {
  readonly snapshot: Snapshot;
  readonly now: number;
  /** The runs in the NodeRollout of the plan, the newest first; undefined if nobody asked for them or they are unknown. */
  readonly runs?: readonly NodeRolloutRun[] | undefined;
}

/** Returns the RFC 3339 time at which the present run started; undefined if no time is recorded. */
export function startOf(recorded: Recorded): string | undefined {
  const { snapshot, now, runs = [] } = recorded;
  const first = firstMoment(snapshot);
  return first === undefined
    ? undefined
    : startOfRun(runs, presentRun(recorded), { first: () => first, now });
}

/**
 * Returns the RFC 3339 time at which the present run ended; undefined if it has not ended, or if the time is unknown. It
 * is the time of the last target. If the plan was aborted, and this stopped no target, only the NodeRollout has the time.
 */
export function endOf(recorded: Recorded): string | undefined {
  const { snapshot, runs = [] } = recorded;
  const { rollout } = snapshot;
  const { controls } = snapshot.plan;
  if (!isFinal(rollout)) return undefined;
  const targets = rollout.stages.flatMap((stage) => stage.targets);
  const isTold = controls.abort === undefined || targets.some(({ state }) => state === 'failed');
  const moments = targets.map((target) => lastMoment(target, factsOf(snapshot, target)));
  const last = moments.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
  return isTold ? last : endOfRun(runs, presentRun(recorded));
}

/** An edit after the end has started no run, even if the plan has a new id now. The last run is still the present one. */
function presentRun({ snapshot, now, runs = [] }: Recorded): NamedRun {
  const { source, id } = snapshot.rollout;
  const isEdited = planEndOf(snapshot, now).phase === 'edited';
  const last = isEdited ? runs.find(({ planUid }) => planUid === source.uid)?.id : undefined;
  return { id: last ?? id, planUid: source.uid };
}

/**
 * Returns the earliest time at which a target was signalled, or began to wait. If a target has ended and nothing says
 * when it was signalled, returns the time at which the plan was created.
 */
function firstMoment(snapshot: Snapshot): string | undefined {
  const { rollout } = snapshot;
  if (rollout.phase === 'new') return undefined;
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
