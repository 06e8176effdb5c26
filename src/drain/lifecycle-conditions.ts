/**
 * Reads and writes the lifecycle conditions of a Node (KEP-5683). With these conditions, Refit informs other
 * controllers that it upgrades the node. Every condition of Refit contains the name of its owner, so that Refit never
 * clears a condition that somebody else set, and always finds its own conditions.
 */
import type { Node, NodeCondition } from '../kube/resources.ts';
import { rfc3339 } from '../util/clock.ts';
import { onceForEach } from '../util/memo.ts';

/**
 * The conditions that Refit writes. Kubernetes defines their names since v1.37, but older API servers also store these
 * conditions.
 */
export const LIFECYCLE_CONDITIONS = [
  'MaintenancePlanned',
  'MaintenanceInProgress',
  'DrainInProgress',
  'Drained',
] as const;
export type LifecycleCondition = (typeof LIFECYCLE_CONDITIONS)[number];

/** A lifecycle condition that is True now. */
export interface LifecycleState {
  readonly type: LifecycleCondition;
  /** The claim of the plan for which Refit set the condition; undefined if somebody else set it. */
  readonly owner: string | undefined;
}

/** The reason of each condition of Refit. */
export const LIFECYCLE_REASON = 'RefitUpgrade';

/** The message of a condition of Refit begins with these words, and its owner follows. */
const FOR = 'set by Refit for ';

/** Returns the lifecycle conditions of the Node that are True. */
export const lifecycleOn = onceForEach(({ status }: Node): readonly LifecycleState[] =>
  LIFECYCLE_CONDITIONS.flatMap((type) => {
    const found = status?.conditions?.find((each) => each.type === type);
    return found?.status === 'True' ? [{ type, owner: ownerOf(found) }] : [];
  }),
);

function ownerOf({ reason, message = '' }: NodeCondition): string | undefined {
  if (reason !== LIFECYCLE_REASON || !message.startsWith(FOR)) return undefined;
  return message.slice(FOR.length);
}

/** The changes after which exactly the wanted conditions are True. The lists are empty if nothing must change. */
export interface LifecycleChange {
  readonly set: readonly LifecycleCondition[];
  readonly clear: readonly LifecycleCondition[];
}

/** Compares the conditions of the Node with those that the owner wants. A condition of somebody else counts as set, and is not cleared. */
export function lifecycleChange(
  shown: readonly LifecycleState[],
  owner: string,
  wanted: readonly LifecycleCondition[],
): LifecycleChange {
  return {
    set: wanted.filter((type) => shown.every((each) => each.type !== type)),
    clear: shown.flatMap((each) =>
      each.owner === owner && !wanted.includes(each.type) ? each.type : [],
    ),
  };
}

/** Returns true if there is something to set or to clear. */
export function isChange({ set, clear }: LifecycleChange): boolean {
  return set.length + clear.length > 0;
}

/**
 * Returns a strategic merge patch for the status of the Node. The API server refuses the patch if the Node has changed
 * since it was read. The patch contains only the conditions of Refit, so it does not change the conditions of the
 * kubelet.
 */
export function lifecyclePatch(
  { metadata: { resourceVersion } }: Node,
  owner: string,
  { set, clear }: LifecycleChange,
  now: number,
) {
  const conditionOf =
    (status: 'True' | 'False', message: string) =>
    (type: LifecycleCondition): NodeCondition => ({
      type,
      status,
      reason: LIFECYCLE_REASON,
      message,
      lastHeartbeatTime: rfc3339(now),
      lastTransitionTime: rfc3339(now),
    });
  const conditions = [
    ...set.map(conditionOf('True', `${FOR}${owner}`)),
    ...clear.map(conditionOf('False', `cleared by Refit for ${owner}`)),
  ];
  return { metadata: { resourceVersion }, status: { conditions } };
}
