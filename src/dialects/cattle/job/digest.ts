/** Owns the text in which fields of a Plan, named by its digest annotation, count into its hash. */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { formatGoDuration, parseGoDuration } from '../../../util/go-duration.ts';
import { isRecord } from '../../../util/json.ts';

/** `paths` as in the annotation: commas between them, blanks are part of a path; members of lists cannot be named. */
export function digestOf(plan: CattlePlan, paths: string): string {
  const root = { ...plan, spec: asWritten(plan.spec ?? {}, 'spec') };
  return paths
    .split(',')
    .map((path) => textOf(path.split('.').reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), root)))
    .join('');
}

function textOf(value: unknown): string {
  return (Array.isArray(value) ? print(value[0] ?? '') : print(value ?? '')).trim();
}

/** As Go prints values: `map[a:1 b:[x y]]`. */
function print(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(print).join(' ')}]`;
  if (value === null) return '<nil>';
  if (!isRecord(value)) return typeof value === 'string' ? value : JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `map[${members.map(([key, member]) => `${key}:${print(member)}`).join(' ')}]`;
}

/** Members whose zero value is told from their absence. */
const POINTERS = new Set(
  [
    'jobActiveDeadlineSecs timeout gracePeriod deleteLocalData deleteEmptydirData ignoreDaemonSets',
    'nodeSelector podSelector drain prepare upgrade window securityContext defaultMode optional privileged',
    'runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation tolerationSeconds',
  ].flatMap((line) => line.split(' ')),
);
/** Their keys are data, and so are their values. */
const MAPS = new Set(['matchLabels', 'postCompleteLabels']);

/** The original counts what it would write itself: without members that say nothing, durations in one form. */
function asWritten(value: unknown, name: string): unknown {
  if (name === 'postCompleteDelay' && typeof value === 'string') {
    const nanoseconds = parseGoDuration(value);
    return nanoseconds === undefined ? value : formatGoDuration(nanoseconds);
  }
  if (Array.isArray(value)) return value.map((item) => asWritten(item, ''));
  if (!isRecord(value) || MAPS.has(name)) return value;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [key, asWritten(member, key)]);
  return Object.fromEntries(members.filter(([key, member]) => POINTERS.has(key) || !isZero(member)));
}

function isZero(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isRecord(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}
