/** The label of NodeRollouts, and the patches of their status. */
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import { isRecord, sameJson } from '../../util/json.ts';

export const DIALECT_LABEL = 'upgrade.refit.dev/dialect';

/** The names of the status fields that the leader computes from assessments. */
const OWN_FIELDS = [
  'observedGeneration',
  'planGeneration',
  'phase',
  'version',
  'counts',
  'progress',
  'percent',
  'eta',
  'wave',
  'waiting',
  'planDeleted',
  'conditions',
  'checks',
  'hooks',
  'silences',
  'wayBack',
  'history',
] as const satisfies readonly (keyof NodeRolloutStatus)[];

/** Returns true if `status` already has every value of `next`, so that no write is needed. */
export function showsAll(next: NodeRolloutStatus, status: NodeRolloutStatus = {}): boolean {
  return OWN_FIELDS.every((field) => sameJson(next[field], status[field]));
}

/** Returns a merge patch of the fields that differ. `null` removes a field. */
export function patchOf(
  next: NodeRolloutStatus,
  status: NodeRolloutStatus = {},
): Partial<Record<keyof NodeRolloutStatus, unknown>> {
  const changed = OWN_FIELDS.filter((field) => !sameJson(next[field], status[field]));
  return Object.fromEntries(changed.map((field) => [field, withNulls(next[field], status[field])]));
}

/** A merge patch keeps the members that it does not name. So members that must be removed get the value `null`. */
function withNulls(next: unknown, before: unknown): unknown {
  if (next === undefined) return null;
  if (!isRecord(next) || !isRecord(before)) return next;
  const lost = Object.keys(before).filter((key) => !Object.hasOwn(next, key));
  return { ...next, ...Object.fromEntries(lost.map((key) => [key, null])) };
}
