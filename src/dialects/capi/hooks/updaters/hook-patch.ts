/** Applies the patches that hooks return, as their callers apply them. */
import { applyPatch as applyOperations, type Operation } from 'rfc6902';
import { z } from 'zod';
import type { Patch, Patches, Triple } from '../../../../api/capi/hooks.ts';
import { applyMergePatch, isRecord, type Json } from '../../../../util/json.ts';
import { printable } from '../../../../util/printable.ts';
import { type Shape, valueAt } from '../can-update.ts';

/**
 * The operations of a JSON patch. `copy` and `move` are not allowed, because a few dozen copies of copies would fill
 * the whole memory.
 */
const operationsSchema = z
  .array(
    z.object({
      op: z.enum(['add', 'replace', 'remove', 'test']),
      path: z.string().regex(/^(\/|$)/),
      value: z.unknown().optional(),
    }),
  )
  .max(1000);

const MAX_VALUES = 5000;
const MAX_TEXT = 300;

export function applyPatches(shape: Shape, current: Triple, patches: Patches): Triple {
  return shape.parts.reduce<Triple>((triple, { object: key }) => {
    const object = triple[key];
    const patch = patches[`${key}Patch`];
    if (!object || !patch) return triple;
    const before = object as unknown as Json;
    const after = valueAt(applyPatch(before, patch), shape.root);
    return after === undefined
      ? triple
      : { ...triple, [key]: placed(before, shape.root, after) as Triple[string] };
  }, current);
}

/**
 * Returns the patched object. Throws for an unknown type, and for an operation that does not apply or is not supported.
 */
export function applyPatch(object: Json, { patchType, patch }: Patch): Json {
  const text = Buffer.from(patch, 'base64').toString('utf8');
  if (patchType === 'JSONMergePatch')
    return text === '' ? object : applyMergePatch(object, parsed(text) as Json);
  if (patchType !== 'JSONPatch') throw new Error(`patchType "${String(patchType)}" is unknown`);
  const { data, error } = operationsSchema.safeParse(parsed(text));
  if (data === undefined) throw new Error(`its JSON patch is not valid: ${describeIssue(error)}`);
  // The object is wrapped in another object, so that a patch can also replace the whole object.
  const holder = { object: structuredClone(object) };
  const operations = data.map((each) => ({ ...each, path: `/object${each.path}` })) as Operation[];
  const failure = applyOperations(holder, operations).find((each) => each !== null);
  if (failure)
    throw new Error(`its JSON patch does not apply: ${failure.message.replace('/object', '')}`);
  return holder.object;
}

/**
 * Parses a patch. Throws if the patch has too many values, because each operation may copy all of them. Throws, too, if
 * the levels of the patch are too deep for the stack.
 */
function parsed(text: string): unknown {
  let values = 0;
  try {
    return JSON.parse(text, (_key, value: unknown) => {
      if (++values > MAX_VALUES) throw new Error(`its patch has more than ${MAX_VALUES} values`);
      return value;
    });
  } catch (error) {
    if (error instanceof RangeError)
      throw new Error('its patch is nested too deeply', { cause: error });
    throw error;
  }
}

/** Returns a copy of `value` with `to` at the path. If `to` is undefined, the copy has nothing at the path. */
export function placed(
  value: unknown,
  [key, ...rest]: readonly string[],
  to: Json | undefined,
): Json | undefined {
  if (key === undefined) return to;
  const members = new Map(Object.entries(isRecord(value) ? (value as Record<string, Json>) : {}));
  const inner = placed(members.get(key), rest, to);
  if (inner === undefined) members.delete(key);
  else members.set(key, inner);
  return Object.fromEntries(members);
}

export function brief(text: string): string {
  return printable(text).slice(0, MAX_TEXT);
}

export function describeIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  return `${issue?.path.join('.') || 'the whole'}: ${issue?.message}`;
}
