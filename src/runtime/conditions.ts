/** Sets one entry of `status.conditions`: its time changes only with its status. */
import type { Condition } from '../kube/resources.ts';
import { rfc3339 } from '../util/clock.ts';

export type ConditionUpdate = Omit<Condition, 'lastTransitionTime'> & Required<Pick<Condition, 'reason' | 'message'>>;

/** Returns the same list if nothing changes, so that callers can skip the write. */
export function withCondition(
  conditions: readonly Condition[] | undefined,
  update: ConditionUpdate,
  now: number,
): readonly Condition[] {
  const known = conditionOf(conditions, update.type);
  const since = known?.status === update.status ? known.lastTransitionTime : undefined;
  const next = { ...update, lastTransitionTime: since ?? rfc3339(now) };
  if (conditions && known && same(known, next)) return conditions;
  const rest = (conditions ?? []).filter((condition) => condition.type !== update.type);
  return [...rest, next].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

export function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

function same(a: Condition, b: Condition): boolean {
  const fields = ['status', 'reason', 'message', 'observedGeneration', 'lastTransitionTime'] as const;
  return fields.every((field) => a[field] === b[field]);
}
