/**
 * Sets one entry of `status.conditions`. The time of the entry changes only with its status, and its message cannot contain control
 * characters.
 */
import type { Condition } from '../kube/resources.ts';
import { rfc3339 } from '../util/clock.ts';
import { sameJson } from '../util/json.ts';
import { printable } from '../util/printable.ts';

export type Conditions = readonly Condition[];

/** A new state of a condition, without its time. */
export type ConditionUpdate = Omit<Condition, 'lastTransitionTime'> &
  Required<Pick<Condition, 'reason' | 'message'>>;

/**
 * Returns the conditions with the update, sorted by type. It returns the same list if nothing
 * changes, so that callers can skip the write. `now` is in milliseconds.
 */
export function withCondition(
  conditions: Conditions | undefined,
  update: ConditionUpdate,
  now: number,
): Conditions {
  const known = conditions?.find(({ type }) => type === update.type);
  const since = known?.status === update.status ? known.lastTransitionTime : undefined;
  const message = printable(update.message);
  const next = { ...update, message, lastTransitionTime: since ?? rfc3339(now) };
  if (conditions && sameJson(known, next)) return conditions;
  const rest = (conditions ?? []).filter((condition) => condition.type !== update.type);
  return [...rest, next].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}
