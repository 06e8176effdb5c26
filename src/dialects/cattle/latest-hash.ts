/** Owns the version that a Plan leads to, and the hash that tells one run from another. */

import { createHash } from 'node:crypto';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import type { Secret } from '../../kube/types.ts';
import { formatGoDuration, parseGoDuration } from '../../util/go-duration.ts';
import { isRecord, stableStringify } from '../../util/json.ts';
import { DIGEST_ANNOTATION } from './names.ts';

/** A version as it may stand in a label: `v1.2.3+k3s1` becomes `v1.2.3-k3s1`. */
export function mungeVersion(version: string): string {
  return version.replaceAll('+', '-');
}

/** The Secrets that count into the hash, by name. */
export function hashedSecrets({ spec }: CattlePlan): string[] {
  return (spec?.secrets ?? []).filter(({ ignoreUpdates }) => ignoreUpdates !== true).map(({ name }) => name);
}

/** 56 hexadecimal digits; `secrets` are those that count, in the order of the plan. */
export function latestHash(plan: CattlePlan, version: string, secrets: readonly Secret[]): string {
  const paths = plan.metadata.annotations?.[DIGEST_ANNOTATION];
  const parts = [
    version,
    plan.spec?.serviceAccountName ?? '',
    ...(paths ? [digestOf(plan, paths)] : []),
    ...secrets.map(secretHash),
  ];
  return createHash('sha224').update(parts.join('')).digest('hex');
}

/** Letters for digits that could form words. */
const LETTERS: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

/** Ten characters; metadata but the name does not count. */
export function secretHash({ metadata, type = '', data, immutable }: Secret): string {
  const content = {
    data: data ?? null,
    ...(immutable === undefined ? {} : { immutable }),
    kind: 'Secret',
    name: metadata.name,
    type,
  };
  const hex = createHash('sha256')
    .update(escapeAsGo(stableStringify(content)))
    .digest('hex');
  return hex.slice(0, 10).replaceAll(/[013ae]/g, (digit) => LETTERS[digit] ?? digit);
}

/** Go writes JSON so that it can stand in HTML. */
function escapeAsGo(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

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
