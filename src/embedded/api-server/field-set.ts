/** Owns sets of fields in the form of `managedFields`: a tree of `f:` names, empty at its leaves. Lists are one field. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/json.ts';

export interface FieldSet {
  readonly [field: string]: FieldSet;
}

const isLeaf = (set: FieldSet): boolean => Object.keys(set).length === 0;

/** The fields of a value that `keep` wants; its paths are the names from the root. */
export function fieldsOf(value: unknown, keep: (path: readonly string[], leaf: unknown) => boolean): FieldSet {
  return collect(value, [], keep) ?? {};
}

function collect(value: unknown, path: readonly string[], keep: Parameters<typeof fieldsOf>[1]): FieldSet | undefined {
  if (!isRecord(value) || (isLeaf(value as FieldSet) && path.length > 0)) return keep(path, value) ? {} : undefined;
  const entries = Object.entries(value).flatMap(([name, item]) => {
    const inner = collect(item, [...path, name], keep);
    return inner ? [[`f:${name}`, inner] as const] : [];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  const result: Record<string, FieldSet> = { ...a };
  for (const [field, inner] of Object.entries(b)) result[field] = union(a[field] ?? {}, inner);
  return result;
}

/** What is in `a` but not in `b`; a leaf of `b` takes everything below it. */
export function minus(a: FieldSet, b: FieldSet): FieldSet {
  const entries = Object.entries(a).flatMap(([field, inner]): [string, FieldSet][] => {
    const other = b[field];
    if (other === undefined) return [[field, inner]];
    const rest = isLeaf(other) ? {} : minus(inner, other);
    return isLeaf(rest) ? [] : [[field, rest]];
  });
  return Object.fromEntries(entries);
}

/** Paths of all leaves. */
export function leavesOf(set: FieldSet): string[][] {
  return Object.entries(set).flatMap(([field, inner]) => {
    const name = field.slice(2);
    return isLeaf(inner) ? [[name]] : leavesOf(inner).map((path) => [name, ...path]);
  });
}

export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value);
}

export const sameAt = (a: unknown, b: unknown, path: readonly string[]): boolean =>
  isDeepStrictEqual(valueAt(a, path), valueAt(b, path));
