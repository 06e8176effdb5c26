/** Patches in the answers of hooks: written from changes, and applied as callers apply them. */
import type { Patch } from '../../api/capi/hooks.ts';
import { applyJsonPatch, applyMergePatch, jsonPointer, type PatchOperation } from '../../kube/json-patch.ts';
import { isRecord, type Json } from '../../util/json.ts';
import { type Change, valueAt, withChange } from './json-diff.ts';

/** A merge patch if possible, else a JSON patch with `add` and `remove` only. */
export function writePatch(object: unknown, changes: readonly Change[]): Patch {
  if (changes.every(({ to }) => isPlain(to))) {
    const document = changes.reduce<Json | undefined>((value, change) => withChange(value, change), {});
    return encode('JSONMergePatch', document ?? {});
  }
  return encode('JSONPatch', [...missingParents(object, changes), ...changes.map(operationOf)]);
}

/** Throws if a caller would: for an unknown type, or an operation that does not apply. */
export function applyPatch(object: Json, { patchType, patch }: Patch): Json {
  const text = Buffer.from(patch, 'base64').toString('utf8');
  if (patchType === 'JSONMergePatch') return text === '' ? object : applyMergePatch(object, JSON.parse(text) as Json);
  if (patchType !== 'JSONPatch') throw new Error(`patchType "${String(patchType)}" is unknown`);
  return applyJsonPatch(object, JSON.parse(text) as PatchOperation[]);
}

/** False for lists and null, which mean something else in a merge patch. */
function isPlain(value: Json | undefined): boolean {
  if (value === undefined || value === null || Array.isArray(value)) return false;
  return !isRecord(value) || Object.values<Json>(value).every(isPlain);
}

function operationOf({ path, to }: Change): PatchOperation {
  return to === undefined
    ? { op: 'remove', path: jsonPointer(path) }
    : { op: 'add', path: jsonPointer(path), value: to };
}

/** `add` wants its parent to be there. */
function missingParents(object: unknown, changes: readonly Change[]): PatchOperation[] {
  const parents = changes
    .filter(({ to }) => to !== undefined)
    .flatMap(({ path }) => path.slice(0, -1).map((_, depth) => path.slice(0, depth + 1)))
    .filter((path) => !isRecord(valueAt(object, path)));
  return [...new Set(parents.map(jsonPointer))].map((path) => ({ op: 'add', path, value: {} }));
}

function encode(patchType: Patch['patchType'], document: unknown): Patch {
  return { patchType, patch: Buffer.from(JSON.stringify(document)).toString('base64') };
}
