/** JSON patches (RFC 6902) as kube-apiserver takes them. The target stays as it is. */
import { isRecord, type Json, sameJson } from '../../../src/util/json.ts';

export interface PatchOperation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

/** An operation of a JSON patch that does not fit its target, or is not valid. */
export class PatchError extends Error {
  override readonly name = 'PatchError';
}

/** Throws a PatchError when one operation fails. `replace` adds a missing member. */
export function applyJsonPatch(target: Json, operations: readonly PatchOperation[]): Json {
  return operations.reduce(applyOperation, target);
}

function applyOperation(target: Json, { op, path, from, value = null }: PatchOperation): Json {
  const keys = keysOf(path);
  switch (op) {
    case 'add':
      return edit(target, keys, () => value);
    case 'remove':
      return without(target, keys);
    case 'replace':
      if (isRecord(valueAt(target, keys.slice(0, -1)))) return edit(target, keys, () => value);
      return edit(without(target, keys), keys, () => value);
    case 'test':
      if (!sameJson(valueAt(target, keys), value))
        throw new PatchError(`the test of ${path} failed`);
      return target;
    case 'copy':
      return edit(target, keys, () => valueAt(target, keysOf(from)));
    case 'move': {
      const moved = valueAt(target, keysOf(from));
      return edit(without(target, keysOf(from)), keys, () => moved);
    }
    default:
      throw new PatchError(`the operation "${op}" is unknown`);
  }
}

function without(target: Json, keys: readonly string[]): Json {
  valueAt(target, keys);
  return edit(target, keys, () => undefined);
}

/** Inserts what `make` returns, in a list before the element at that index; undefined removes the value. */
function edit(target: Json, [key, ...rest]: readonly string[], make: () => Json | undefined): Json {
  if (key === undefined) return make() ?? null;
  if (Array.isArray(target)) return editList(target, key, rest, make);
  if (!isRecord(target)) throw new PatchError(`there is nothing to hold "${key}"`);
  const record = target as Record<string, Json>;
  const { [key]: child, ...others } = record;
  if (rest.length > 0) return { ...others, [key]: edit(existing(child, key), rest, make) };
  const made = make();
  return made === undefined ? others : { ...others, [key]: made };
}

function editList(
  list: readonly Json[],
  key: string,
  rest: readonly string[],
  make: () => Json | undefined,
): Json {
  const index = indexIn(list, key);
  if (rest.length > 0) return list.with(index, edit(existing(list[index], key), rest, make));
  const made = make();
  return made === undefined ? list.toSpliced(index, 1) : list.toSpliced(index, 0, made);
}

/** Negative numbers count from the end, as kube-apiserver takes them. */
function indexIn(list: readonly Json[], key: string): number {
  const index = key === '-' ? list.length : Number(key) + (key.startsWith('-') ? list.length : 0);
  if (!/^-$|^-?\d+$/.test(key) || index < 0 || index > list.length)
    throw new PatchError(`"${key}" is no place in the list`);
  return index;
}

function valueAt(target: Json, keys: readonly string[]): Json {
  return keys.reduce((at, key) => existing(childOf(at, key), key), target);
}

function childOf(parent: Json, key: string): Json | undefined {
  if (Array.isArray(parent)) return parent[indexIn(parent, key)];
  return isRecord(parent) && Object.hasOwn(parent, key)
    ? (parent as Record<string, Json>)[key]
    : undefined;
}

function existing(value: Json | undefined, key: string): Json {
  if (value === undefined) throw new PatchError(`"${key}" does not exist`);
  return value;
}

function keysOf(pointer: unknown): string[] {
  if (typeof pointer !== 'string' || (pointer !== '' && !pointer.startsWith('/')))
    throw new PatchError(`"${String(pointer)}" is no JSON pointer`);
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}
