/** Computes the hash that identifies one run of a Plan, from its version, Secrets and digest fields, as the original does. */

import { createHash } from 'node:crypto';
import type { CattlePlan } from '../../api/cattle/plan.ts';
import type { Secret } from '../../kube/types.ts';
import { formatGoDuration, parseGoDuration } from '../../util/go-duration.ts';
import { isRecord, stableStringify } from '../../util/json.ts';
import { DIGEST_ANNOTATION } from './names.ts';

/** Makes a version usable as a label value: `v1.2.3+k3s1` becomes `v1.2.3-k3s1`. */
export function mungeVersion(version: string): string {
  return version.replaceAll('+', '-');
}

/** Names of the Secrets that are part of the hash. */
export function hashedSecrets({ spec }: CattlePlan): string[] {
  return (spec?.secrets ?? []).filter(({ ignoreUpdates }) => ignoreUpdates !== true).map(({ name }) => name);
}

/** 56 hexadecimal digits; `secrets` are those of `hashedSecrets`, in the same order. */
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

/** Replaces digits that could form words. */
const LETTERS: Readonly<Record<string, string>> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' };

/** Ten characters, as kubectl makes them for generated Secrets; from the content and the name. */
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

/** Go escapes JSON for HTML. */
function escapeAsGo(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The text of the fields that the digest annotation lists: comma-separated paths, without list items; blanks are not trimmed. */
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

/** Pointers in Go: their zero values are written too. */
const POINTERS = new Set(
  [
    'jobActiveDeadlineSecs timeout gracePeriod deleteLocalData deleteEmptydirData ignoreDaemonSets',
    'nodeSelector podSelector drain prepare upgrade window securityContext defaultMode optional privileged',
    'runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation tolerationSeconds',
  ].flatMap((line) => line.split(' ')),
);
/** Maps of free keys and values, which stay as they are. */
const MAPS = new Set(['matchLabels', 'postCompleteLabels']);

/** The value as Go would write it: without zero values, durations in Go's form. */
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
