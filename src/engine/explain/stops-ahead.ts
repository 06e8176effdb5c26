/**
 * Finds the waits that are known to come before a plan ends. While there are any, nobody can tell the time that is left:
 * the plan waits for a person, or for a time that has nothing to do with the speed of its nodes.
 */
import { onceForEach } from '../../util/memo.ts';
import type { Assessment } from '../assess/assess.ts';
import { isTargetHeld } from '../gates/held-targets.ts';
import { openingFor, openUntil } from '../gates/window-open.ts';
import type { ReasonCode } from '../model/reasons.ts';
import { inState, isFinal, type Stage } from '../model/rollout.ts';
import { limitOf } from '../schedule/slots.ts';
import { unapprovedWaves } from '../schedule/wave-approval.ts';
import { wavesOf } from '../schedule/waves.ts';

/** The most pending targets of which holds are read, so that a turn of a very large plan reads no further objects. */
const MOST_READ = 500;

/**
 * Returns the codes of the reasons for which an open plan will wait before it ends, as far as they are known now; empty
 * for a plan that has ended, and for one with no target left to start. The expected end and the JSON form both need them.
 */
export const stopsAhead = onceForEach((assessment: Assessment): readonly ReasonCode[] => {
  const { snapshot, policy } = assessment;
  const { rollout, plan } = snapshot;
  const isLeft = rollout.stages.some((stage) => inState(stage, 'pending').length > 0);
  if (isFinal(rollout) || !isLeft) return [];
  const isPaused = plan.controls.paused || policy.paused || policy.heldBy !== undefined;
  const waves = rollout.stages.flatMap((stage) => wavesAhead(assessment, stage));
  const codes: readonly (readonly [code: ReasonCode, isAhead: boolean])[] = [
    ['Paused', isPaused],
    ['WaveSettles', waves.some(({ settles }) => settles)],
    ['WaveNeedsApproval', waves.some(({ needsApproval }) => needsApproval)],
    ['Held', rollout.stages.some((stage) => hasHeld(assessment, stage))],
  ];
  const closing = closesBefore(assessment);
  return [
    ...codes.flatMap(([code, isAhead]) => (isAhead ? [code] : [])),
    ...(closing === undefined ? [] : [closing]),
  ];
});

/** What lies between the present moment and the start of a wave with pending targets. */
export interface WaveAhead {
  /** The number of the wave, from 1. */
  readonly wave: number;
  /** True if an earlier wave has a settle time that is not over. */
  readonly settles: boolean;
  readonly needsApproval: boolean;
}

/** Returns the waves of the stage with pending targets that cannot start yet, although earlier waves may end soon. */
export function wavesAhead(assessment: Assessment, stage: Stage): WaveAhead[] {
  const { members = [], goneEnds = [] } = wavesOf(assessment, stage) ?? {};
  const { policy, now } = assessment;
  const unapproved = new Set(unapprovedWaves(assessment));
  return members.flatMap((wave, index) => {
    if (inState({ targets: wave }, 'pending').length === 0) return [];
    const settles = members.slice(0, index).some((earlier, before) => {
      const { settleMs = 0 } = policy.waves?.[before] ?? {};
      return (
        settleMs > 0 &&
        ((goneEnds[before] ?? Number.NEGATIVE_INFINITY) + settleMs > now ||
          earlier.some(({ state, since }) => {
            const isOpen = state === 'pending' || state === 'intended';
            return isOpen || Date.parse(since) + settleMs > now;
          }))
      );
    });
    const needsApproval = unapproved.has(index + 1);
    return settles || needsApproval ? [{ wave: index + 1, settles, needsApproval }] : [];
  });
}

function hasHeld(assessment: Assessment, stage: Stage): boolean {
  const pending = inState(stage, 'pending').slice(0, MOST_READ);
  return pending.some((target) => isTargetHeld(assessment, stage, target));
}

/**
 * Returns the code of a window that is closed now, or that closes before the last target can start; undefined if there is
 * none. If it is not known how long the targets take, only the present moment counts.
 */
function closesBefore({ snapshot, policy, now }: Assessment): ReasonCode | undefined {
  const { rollout, pace, plan } = snapshot;
  const rounds = rollout.stages.reduce((sum, stage) => sum + roundsOf(stage), 0);
  const end = pace.kind === 'measured' ? now + rounds * pace.mostMs : now;
  const opening = openingFor(policy, plan.controls, now);
  if (opening !== undefined && end <= Date.parse(opening.until)) return undefined;
  const until = openUntil(policy, now);
  if (until !== undefined && end <= until) return undefined;
  return policy.blackouts.some(({ from, to }) => from <= end && now < to)
    ? 'Blackout'
    : 'WindowClosed';
}

/** Returns how many times the slots of the stage must still be filled until all its targets have ended. */
export function roundsOf(stage: Stage): number {
  const open = inState(stage, 'pending').length + inState(stage, 'intended').length;
  return Math.ceil(open / Math.max(1, limitOf(stage)));
}
