/** Defines the types of plain JSON values, their equality, and a stable text form. */
import { ifPossible } from './errors.ts';
import { ownMember } from './own-member.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Returns true if the JSON values are equal. A member that is `undefined` counts as absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((each, at) => sameJson(each, b[at]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = keysOf(a);
  return (
    keys.length === keysOf(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameJson(ownMember(a, key), ownMember(b, key)))
  );
}

const keysOf = (record: Record<string, unknown>) =>
  Object.keys(record).filter((key) => ownMember(record, key) !== undefined);

/** Returns JSON text with keys sorted as Go sorts them, so that equal values have equal texts. */
export function stableStringify(value: unknown): string {
  if (Array.isArray(value))
    return `[${value.map((each: unknown) => stableStringify(each ?? null)).join()}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? 'undefined';
  const textOf = (key: string): string =>
    `${JSON.stringify(key)}:${stableStringify(ownMember(value, key))}`;
  return `{${keysOf(value).toSorted().map(textOf).join()}}`;
}

/** Returns true for an object that is not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the objects in the list; empty if the value is no list. */
export function recordsIn(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Returns true for a text that is not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns the value, or undefined if the text is absent or not JSON. */
export function parseJson(text: string | undefined): unknown {
  return text === undefined ? undefined : ifPossible((): unknown => JSON.parse(text));
}

type Defined<T> = {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
} & {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
};

/** Returns the object without the members that are undefined. */
export function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined),
  ) as Defined<T>;
}

/** Escapes the five characters that Go's encoder escapes. In JSON they occur only in strings. */
export function escapeLikeGo(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Applies a merge patch (RFC 7386). A null in the patch removes the member, and lists are replaced
 * as a whole.
 */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isRecord(patch)) return patch;
  const merged = new Map(Object.entries(isRecord(target) ? (target as Record<string, Json>) : {}));
  for (const [key, value] of Object.entries(patch as Record<string, Json>)) {
    if (value === null) merged.delete(key);
    else merged.set(key, applyMergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
