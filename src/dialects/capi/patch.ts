/** Owns patches of hooks: written from changes, and applied as callers apply them (RFC 6902 and RFC 7386). */
import type { Patch } from '../../api/capi/hooks.ts';
import { isRecord, type Json, sameJson } from '../../util/json.ts';
import { type Change, valueAt, withChange } from './json-diff.ts';

/** A merge patch where one can say it, else a JSON patch that only adds and removes. */
export function writePatch(object: unknown, changes: readonly Change[]): Patch {
  if (changes.every(({ to }) => isPlain(to))) {
    const document = changes.reduce<Json | undefined>((value, change) => withChange(value, change), {});
    return encode('JSONMergePatch', document ?? {});
  }
  return encode('JSONPatch', [...missingParents(object, changes), ...changes.map(operationOf)]);
}

/** The object after the patch; throws what a caller would throw, too: an unknown type, or an operation that does not fit. */
export function applyPatch(object: Json, { patchType, patch }: Patch): Json {
  const text = Buffer.from(patch, 'base64').toString('utf8');
  if (patchType === 'JSONMergePatch') return text === '' ? object : merge(object, JSON.parse(text) as Json);
  if (patchType !== 'JSONPatch') throw new Error(`patchType "${String(patchType)}" is unknown`);
  const operations = JSON.parse(text) as Operation[];
  return operations.reduce((value, operation) => operate(value, operation), object);
}

/** Merge patches replace lists whole and take null for removal, so anything with either is left to JSON patches. */
function isPlain(value: Json | undefined): boolean {
  if (value === undefined || value === null || Array.isArray(value)) return false;
  return !isRecord(value) || Object.values<Json>(value).every(isPlain);
}

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

function operationOf({ path, to }: Change): Operation {
  return to === undefined ? { op: 'remove', path: pointer(path) } : { op: 'add', path: pointer(path), value: to };
}

/** `add` wants its parent to be there. */
function missingParents(object: unknown, changes: readonly Change[]): Operation[] {
  const parents = changes
    .filter(({ to }) => to !== undefined)
    .flatMap(({ path }) => path.slice(0, -1).map((_, depth) => path.slice(0, depth + 1)))
    .filter((path) => !isRecord(valueAt(object, path)));
  return [...new Set(parents.map(pointer))].map((path) => ({ op: 'add', path, value: {} }));
}

function encode(patchType: Patch['patchType'], document: unknown): Patch {
  return { patchType, patch: Buffer.from(JSON.stringify(document)).toString('base64') };
}

function merge(target: Json | undefined, patch: Json): Json {
  if (!isRecord(patch)) return patch;
  const merged = new Map(Object.entries(isRecord(target) ? (target as Record<string, Json>) : {}));
  for (const [key, value] of Object.entries(patch as Record<string, Json>)) {
    if (value === null) merged.delete(key);
    else merged.set(key, merge(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

function operate(value: Json, { op, path, from, value: given = null }: Operation): Json {
  const keys = keysOf(path);
  switch (op) {
    case 'add':
      return edit(value, keys, () => given);
    case 'replace':
      read(value, keys);
      return edit(
        edit(value, keys, () => undefined),
        keys,
        () => given,
      );
    case 'remove':
      read(value, keys);
      return edit(value, keys, () => undefined);
    case 'test':
      if (!sameJson(read(value, keys), given)) throw new Error(`the test of ${path} failed`);
      return value;
    case 'copy':
      return edit(value, keys, () => read(value, keysOf(from ?? '')));
    case 'move': {
      const moved = read(value, keysOf(from ?? ''));
      return edit(
        edit(value, keysOf(from ?? ''), () => undefined),
        keys,
        () => moved,
      );
    }
    default:
      throw new Error(`the operation "${op}" is unknown`);
  }
}

/** Puts what `make` gives at the place, into a list before what stands there; undefined takes the place away. */
function edit(value: Json, [key, ...rest]: readonly string[], make: () => Json | undefined): Json {
  if (key === undefined) return make() ?? null;
  if (Array.isArray(value)) return editList(value, key, rest, make);
  if (!isRecord(value)) throw new Error(`there is nothing to hold "${key}"`);
  const record = value as Record<string, Json>;
  const { [key]: child, ...others } = record;
  if (rest.length > 0) return { ...others, [key]: edit(held(child, key), rest, make) };
  const made = make();
  return made === undefined ? others : { ...others, [key]: made };
}

function editList(list: readonly Json[], key: string, rest: readonly string[], make: () => Json | undefined): Json {
  const index = key === '-' ? list.length : Number(key);
  if (!Number.isInteger(index) || index < 0 || index > list.length) throw new Error(`"${key}" is no place in the list`);
  if (rest.length > 0) return list.with(index, edit(held(list[index], key), rest, make));
  const made = make();
  return made === undefined ? list.toSpliced(index, 1) : list.toSpliced(index, 0, made);
}

function read(value: Json, keys: readonly string[]): Json {
  return keys.reduce((at, key) => held(Array.isArray(at) ? at[Number(key)] : valueAt(at, [key]), key), value);
}

function held(value: Json | undefined, key: string): Json {
  if (value === undefined) throw new Error(`"${key}" does not exist`);
  return value;
}

function pointer(path: readonly string[]): string {
  return path.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function keysOf(text: string): string[] {
  if (text !== '' && !text.startsWith('/')) throw new Error(`"${text}" is no JSON pointer`);
  return text
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}
