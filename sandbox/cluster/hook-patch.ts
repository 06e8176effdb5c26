/** Applies the patches of hooks as callers do. */
import type { Patch, Patches, Triple } from '../../src/api/capi/hooks.ts';
import type { Shape } from '../../src/dialects/capi/can-update.ts';
import { isRecord, type Json } from '../../src/util/json.ts';
import { applyJsonPatch, applyMergePatch, type PatchOperation } from '../api-server/writes/json-patch.ts';

/** Only below the shape's root. */
export function applyPatches(shape: Shape, current: Triple, patches: Patches): Triple {
  return shape.parts.reduce<Triple>((triple, { object: key }) => {
    const [object, patch] = [triple[key], patches[`${key}Patch`]];
    if (!object || !patch) return triple;
    const before = object as unknown as Json;
    return { ...triple, [key]: graft(before, applyPatch(before, patch), shape.root) as unknown as Triple[string] };
  }, current);
}

/** Throws if a caller would: for an unknown type, or an operation that does not apply. */
export function applyPatch(object: Json, { patchType, patch }: Patch): Json {
  const text = Buffer.from(patch, 'base64').toString('utf8');
  if (patchType === 'JSONMergePatch') return text === '' ? object : applyMergePatch(object, JSON.parse(text) as Json);
  if (patchType !== 'JSONPatch') throw new Error(`patchType "${String(patchType)}" is unknown`);
  return applyJsonPatch(object, JSON.parse(text) as PatchOperation[]);
}

/** `before` with the value that `after` has at the path, if any. */
function graft(before: Json, after: Json | undefined, [key, ...rest]: readonly string[]): Json {
  if (key === undefined) return after ?? before;
  const child = isRecord(after) ? after[key] : undefined;
  if (child === undefined || !isRecord(before)) return before;
  return { ...before, [key]: graft(before[key] ?? {}, child, rest) };
}
