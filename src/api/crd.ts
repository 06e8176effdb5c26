/** What the schemas of custom kinds are written with. tools/crds/definition.ts makes definitions of them. */
import { z } from 'zod';
import type { Resource } from '../kube/resources.ts';

/** An object of a schema, which refuses fields that it does not name. */
export function object<S extends z.core.$ZodLooseShape>(
  what: string,
  fields: S,
): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(fields).describe(what);
}

/** `most` characters; kinds of other products have no such limit, so that they take what the originals take. */
export function text(what: string, most?: number): z.ZodExactOptional<z.ZodString> {
  return optional(what, most === undefined ? z.string() : z.string().max(most));
}

/** Characters of names and of other text in kinds of our own, as API servers limit them. */
export const LONGEST = {
  /** Of an object or a Node. */
  name: 253,
  namespace: 63,
  /** Of a label: prefix, slash and name. */
  labelKey: 317,
  labelValue: 63,
  /** Of a condition. */
  conditionType: 316,
  reason: 1024,
  /** A kind, a namespace and a name, or such. */
  reference: 512,
  word: 64,
} as const;
export const flag = (what: string): z.ZodExactOptional<z.ZodBoolean> => optional(what, z.boolean());

export function optional<T extends z.ZodType>(what: string, schema: T): z.ZodExactOptional<T> {
  return schema.exactOptional().describe(what);
}

export function list<T extends z.ZodType>(
  what: string,
  item: T,
): z.ZodExactOptional<z.ZodArray<T>> {
  return optional(what, z.array(item));
}

export function time(what: string): z.ZodString {
  return z.string().meta({ format: 'date-time', description: what });
}

/** As Go has it; `whole` is for what has limits of its own. */
export function integer(format: 'int32' | 'int64', what: string): z.ZodExactOptional<z.ZodInt> {
  return optional(what, z.int().meta({ format }));
}

export function whole(what: string, most = Number.MAX_SAFE_INTEGER): z.ZodExactOptional<z.ZodInt> {
  return optional(what, z.int().min(0).max(most));
}

export function choice<const T extends string>(what: string, ...values: readonly T[]) {
  return optional(what, z.enum(values));
}

/** Of a list of conditions: one of each type. */
export const BY_TYPE = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] };

export interface CustomKind {
  readonly resource: Resource;
  /** The fields beside `apiVersion`, `kind` and `metadata`; a `status` is a subresource. */
  readonly schema: z.ZodObject;
}
