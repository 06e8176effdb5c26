/**
 * Remembers the targets whose objects the API server refuses to change. Only these targets wait, and the pause of each
 * target grows with every refusal.
 */
import type { MonotonicClock } from '../../util/clock.ts';
import type { FailedRequest } from '../model/asked.ts';
import type { NodeAction, Signalling } from '../model/decision.ts';
import { because, type Reason } from '../model/reasons.ts';
import type { Rollout, Target } from '../model/rollout.ts';
import { refusedWrite } from '../reasons/refused-write.ts';
import { probeBackoff } from './probe-backoff.ts';

type Refused = Pick<Signalling, 'stage' | 'target'>;

/**
 * The part that the API server refused to change. `object` is the object of the target, and the target waits for it.
 * `announcement` means the lifecycle conditions of the Node of the target. `announcements` means the lifecycle
 * conditions of all Nodes, because the leader has no permission to write them.
 */
export type RefusedPart = 'object' | 'announcement' | 'announcements';

/** Matches the message of the API server that RBAC does not grant a right. */
const MISSING_RIGHT = /\bcannot \w+ resource\b/;

/** Returns the part that is refused if the API server answers this node action with the message `words`. */
export function refusedPartOf({ kind }: NodeAction, words: string): RefusedPart {
  if (kind !== 'announce') return 'object';
  return MISSING_RIGHT.test(words) ? 'announcements' : 'announcement';
}

/** Reports a refused write. It is called if the message differs from the last message about the same target. */
export type ReportRefusal = (rollout: Rollout, at: Refused, reason: Reason) => void;

/** The refused writes of one term of leadership. */
export interface RefusedWrites {
  /** Returns the last refusal of the target's object and the pause that is left; undefined if it may be written now. */
  of(rollout: Rollout, target: Target, part?: RefusedPart): FailedRequest | undefined;
  /** Records a refusal. `message` is what the API server answered. */
  add(rollout: Rollout, at: Refused, message: string, part?: RefusedPart): void;
  /** Returns the milliseconds until the next write may be tried again; undefined if no target waits. */
  nextMs(): number | undefined;
}

/** Returns an empty record of refused writes. It calls `report` for new refusals. */
export function refusedWrites(clock: MonotonicClock, report: ReportRefusal): RefusedWrites {
  const backoff = probeBackoff();
  const keyOf = ({ source }: Rollout, { key }: Target, part: RefusedPart): string =>
    [part, source.uid, ...(part === 'announcements' ? [] : [key])].join(' ');
  const ofPart = (rollout: Rollout, target: Target, part: RefusedPart) =>
    backoff.of(keyOf(rollout, target, part), clock.monotonic());
  return {
    of(rollout, target, part = 'object') {
      if (backoff.isEmpty()) return undefined;
      const found = ofPart(rollout, target, part);
      return part === 'announcement' ? (found ?? ofPart(rollout, target, 'announcements')) : found;
    },
    add(rollout, at, message, part = 'object') {
      // If the leader lacks the right, all writes of one turn are refused for this reason. They count as one refusal.
      if (part === 'announcements' && ofPart(rollout, at.target, part)) return;
      const reason = because('TargetRefused', refusedWrite(at.target.name, RESTS[part](message)));
      const { isNew } = backoff.add(keyOf(rollout, at.target, part), reason, clock.monotonic());
      if (isNew) report(rollout, at, reason);
    },
    nextMs: () => backoff.nextMs(clock.monotonic()),
  };
}

const RESTS: Readonly<Record<RefusedPart, (message: string) => string>> = {
  object: (message) => `to change its object: ${message}`,
  announcement: (message) =>
    `to write its node conditions, and the plan goes on without them: ${message}`,
  announcements: (message) =>
    `to write node conditions, and the plan goes on without those of any node: ${message}; ` +
    '`refit install rights node-conditions` prints this right',
};
