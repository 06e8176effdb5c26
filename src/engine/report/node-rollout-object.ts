/** Places, names and patches of NodeRollouts. */
import { hash } from 'node:crypto';
import type { NodeRolloutStatus } from '../../api/refit/node-rollout.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { defined, isRecord, sameJson } from '../../util/json.ts';
import type { Dialect } from '../contract/dialect.ts';

export const DIALECT_LABEL = 'upgrade.refit.dev/dialect';
const LONGEST_NAME = 253;

export interface Place {
  readonly namespace: string;
  /** The name of the NodeRollout. */
  readonly name: string;
  /** The plan as people know it. */
  readonly subject: { readonly name: string; readonly namespace?: string };
}

/** Returns where the NodeRollout of the plan is; undefined if the plan has none. */
export function placeOf(dialect: Dialect, plan: KubeObject): Place | undefined {
  const { nodeRollouts: feature } = dialect;
  const subject = feature?.subjectOf ? feature.subjectOf(plan) : plan.metadata;
  const namespace = subject?.namespace ?? feature?.namespace;
  if (subject === undefined || namespace === undefined) return undefined;
  const named = defined({ name: subject.name, namespace: subject.namespace });
  const whole = `${dialect.name}-${subject.name}`;
  if (whole.length <= LONGEST_NAME) return { namespace, name: whole, subject: named };
  const digest = hash('sha256', whole).slice(0, 8);
  const kept = whole.slice(0, LONGEST_NAME - digest.length - 1);
  return { namespace, name: `${kept}-${digest}`, subject: named };
}

/** The fields of the status that come from assessments. */
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
  'wayBack',
  'history',
] as const satisfies readonly (keyof NodeRolloutStatus)[];

/** Returns true if the status shows everything that `next` does. */
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

/** A merge patch keeps members that it does not name, so members that must go are named with null. */
function withNulls(next: unknown, before: unknown): unknown {
  if (next === undefined) return null;
  if (!isRecord(next) || !isRecord(before)) return next;
  const lost = Object.keys(before).filter((key) => !Object.hasOwn(next, key));
  return { ...next, ...Object.fromEntries(lost.map((key) => [key, null])) };
}
