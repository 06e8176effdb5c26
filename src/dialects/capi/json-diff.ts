/** Owns the difference between two JSON values as changes at leaf paths, and its way back into a value. */
import { isRecord, type Json, sameJson } from '../../util/json.ts';

/** One leaf that is not as it should be; a side that is undefined lacks it. Lists are leaves. */
export interface Change {
  readonly path: readonly string[];
  readonly from?: Json | undefined;
  readonly to?: Json | undefined;
}

type Value = Json | undefined;

/**
 * What has to change so that `from` becomes `to`, in the order of the paths. What is added is told leaf by leaf, so that
 * several may add a part each; what is taken away is told once, at its top.
 */
export function differences(from: Value, to: Value, path: readonly string[] = []): Change[] {
  if (sameJson(from, to)) return [];
  const isNewAndEmpty = from === undefined && isRecord(to) && Object.keys(to).length === 0;
  if (!isRecord(to) || !canHold(from) || isNewAndEmpty) return [{ path, from, to }];
  const before = isRecord(from) ? from : {};
  const keys = [...new Set([...Object.keys(before), ...Object.keys(to)])].toSorted();
  return keys.flatMap((key) => differences(own(before, key), own(to, key), [...path, key]));
}

/** `value` with the leaf at the change's path as the change wants it; everything else is shared with `value`. */
export function withChange(value: Value, { path: [key, ...rest], to }: Pick<Change, 'path' | 'to'>): Value {
  if (key === undefined) return to;
  const record: Record<string, Json> = isRecord(value) ? value : {};
  const next = withChange(own(record, key), { path: rest, to });
  const { [key]: _, ...others } = record;
  return next === undefined ? others : { ...others, [key]: next };
}

/** The value at a path; undefined where there is none. */
export function valueAt(value: unknown, path: readonly string[]): Value {
  return path.reduce<unknown>((at, key) => (isRecord(at) ? own(at, key) : undefined), value) as Value;
}

/** Names that every object inherits are no members of it. */
function own(record: Record<string, unknown>, key: string): Value {
  return Object.hasOwn(record, key) ? (record[key] as Value) : undefined;
}

function canHold(value: Value): boolean {
  return value === undefined || isRecord(value);
}
