/** Remembers which targets have an object that the API server refuses to change. Only these targets wait, each for a growing pause. */
import type { MonotonicClock } from '../../util/clock.ts';
import type { NodeAction, Signalling, Unanswered } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import { probeBackoff } from './probe-backoff.ts';

type Refused = Pick<Signalling, 'stage' | 'target'>;

/** What was refused: a change of the target's object, for which the target waits, or the lifecycle conditions of its Node. */
export type RefusedPart = 'object' | 'announcement';

/** Returns what is refused if the API server refuses the node action. */
export function refusedPartOf({ kind }: NodeAction): RefusedPart {
  return kind === 'announce' ? 'announcement' : 'object';
}

/** Reports a refused write. It is called if the message differs from the last one about the same target. */
export type ReportRefusal = (rollout: Rollout, at: Refused, reason: Reason) => void;

/** The refused writes of one term of leadership. */
export interface RefusedWrites {
  /** Returns the last refusal of the target's object and the pause that is left; undefined if it may be written now. */
  of(rollout: Rollout, target: Target, part?: RefusedPart): Unanswered | undefined;
  /** Records a refusal. `message` is what the API server answered. */
  add(rollout: Rollout, at: Refused, message: string, part?: RefusedPart): void;
  /** Returns the milliseconds until the next write may be tried again; undefined if no target waits. */
  nextMs(): number | undefined;
}

/** Returns an empty record of refused writes. It calls `report` for new refusals. */
export function refusedWrites(clock: MonotonicClock, report: ReportRefusal): RefusedWrites {
  const backoff = probeBackoff();
  const keyOf = ({ source }: Rollout, { key }: Target, part: RefusedPart): string =>
    `${part} ${source.uid} ${key}`;
  return {
    of: (rollout, target, part = 'object') =>
      backoff.isEmpty() ? undefined : backoff.of(keyOf(rollout, target, part), clock.monotonic()),
    add(rollout, at, message, part = 'object') {
      const reason = because('TargetRefused', `${at.target.name}: ${SENTENCES[part](message)}`);
      const { isNew } = backoff.add(keyOf(rollout, at.target, part), reason, clock.monotonic());
      if (isNew) report(rollout, at, reason);
    },
    nextMs: () => backoff.nextMs(clock.monotonic()),
  };
}

const SENTENCES: Readonly<Record<RefusedPart, (message: string) => string>> = {
  object: (message) => `the API server refuses to change its object: ${message}`,
  announcement: (message) =>
    `the API server refuses to write its node conditions, and the upgrade goes on without them: ${message}; ` +
    '`refit install rights node-conditions` prints this right',
};
