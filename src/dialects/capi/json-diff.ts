/** Computes the difference between two JSON values as changes at leaf paths, and applies such changes. */
import { isRecord, type Json, sameJson } from '../../util/json.ts';

/** One changed leaf; undefined means that the leaf is absent. Lists are leaves. */
export interface Change {
  readonly path: readonly string[];
  readonly from?: Json | undefined;
  readonly to?: Json | undefined;
}

type Value = Json | undefined;

/**
 * The changes from `from` to `to`, sorted by path. An added object is one change per leaf, so that several updaters can add
 * parts of it. A removed object is one change.
 */
export function differences(from: Value, to: Value, path: readonly string[] = []): Change[] {
  if (sameJson(from, to)) return [];
  const isNewAndEmpty = from === undefined && isRecord(to) && Object.keys(to).length === 0;
  if (!isRecord(to) || !canHold(from) || isNewAndEmpty) return [{ path, from, to }];
  const before = isRecord(from) ? from : {};
  const keys = [...new Set([...Object.keys(before), ...Object.keys(to)])].toSorted();
  return keys.flatMap((key) => differences(own(before, key), own(to, key), [...path, key]));
}

/** A copy of `value` with the change; unchanged parts are shared. */
export function withChange(value: Value, { path: [key, ...rest], to }: Pick<Change, 'path' | 'to'>): Value {
  if (key === undefined) return to;
  const record: Record<string, Json> = isRecord(value) ? value : {};
  const next = withChange(own(record, key), { path: rest, to });
  const { [key]: _, ...others } = record;
  return next === undefined ? others : { ...others, [key]: next };
}

export function valueAt(value: unknown, path: readonly string[]): Value {
  return path.reduce<unknown>((at, key) => (isRecord(at) ? own(at, key) : undefined), value) as Value;
}

/** Ignores inherited names such as `constructor`. */
function own(record: Record<string, unknown>, key: string): Value {
  return Object.hasOwn(record, key) ? (record[key] as Value) : undefined;
}

function canHold(value: Value): boolean {
  return value === undefined || isRecord(value);
}
