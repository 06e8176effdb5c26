/** Counts the targets of a rollout, and estimates when the rollout is done. */
import { rfc3339 } from '../../util/clock.ts';
import type { Assessment } from '../assess/assess.ts';
import type { Wait } from '../model/decision.ts';
import { inState, type Rollout } from '../model/rollout.ts';
import { isRemarkable } from './remarkable-waits.ts';
import { roundsOf, stopsAhead } from './stops-ahead.ts';

/** The numbers of the targets in the recorded states. `inProgress` counts the targets with a recorded intent. */
export type Counts = Readonly<
  Record<'total' | 'done' | 'failed' | 'inProgress' | 'pending' | 'skipped', number>
>;

/** The RFC 3339 times at which a plan is expected to be done: if its nodes take as long as usual, and the limits of that. */
export type Eta = Readonly<Record<'at' | 'earliest' | 'latest', string>>;

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
 * times, if the plan waits for something else than a slot or will do so before its end, or if nothing is left to do.
 */
export function etaOf(assessment: Assessment, waits: readonly Wait[]): Eta | undefined {
  const { snapshot, now, isStopping } = assessment;
  const { rollout, pace } = snapshot;
  if (rollout.phase !== 'running' || isStopping || waits.some(isRemarkable)) return undefined;
  if (pace.kind !== 'measured' || stopsAhead(assessment).length > 0) return undefined;
  const rounds = rollout.stages.reduce((sum, stage) => sum + roundsOf(stage), 0);
  if (rounds === 0) return undefined;
  const after = (ms: number): string => rfc3339(now + rounds * ms);
  return { at: after(pace.usualMs), earliest: after(pace.fastMs), latest: after(pace.mostMs) };
}
