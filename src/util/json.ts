/** Plain JSON values: their types, equality and a stable text form. */
import { ifPossible } from './errors.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Equality of JSON values; an `undefined` member counts as absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  return stableStringify(a) === stableStringify(b);
}

/** JSON text with sorted keys, so that equal values have equal texts. */
export function stableStringify(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (isRecord(inner) ? sorted(inner) : inner)) ?? 'undefined';
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

export function parseJson(text: string | undefined): unknown {
  return text === undefined ? undefined : ifPossible((): unknown => JSON.parse(text));
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> } & {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
};

export function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>;
}

/** Go's encoder escapes these five characters; in JSON they occur only in strings. */
export function escapeLikeGo(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
