/**
 * Provides the building blocks for the schemas of custom kinds. tools/crds/definition.ts turns such schemas into CRDs.
 */
import { z } from 'zod';
import type { Resource } from '../kube/resources.ts';
import { type MisplacedMembers, strictObject } from '../util/strict-object.ts';

/** Returns the schema of an object. The schema refuses fields that it does not name. */
export function object<S extends z.core.$ZodLooseShape>(
  what: string,
  fields: S,
  misplaced?: MisplacedMembers,
): z.ZodObject<S, z.core.$strict> {
  return strictObject(fields, misplaced).describe(what);
}

/**
 * Returns the schema of an optional text of at most `most` characters. Kinds of other products pass no limit, so that
 * Refit accepts every text that the original controllers accept.
 */
export function text(what: string, most?: number): z.ZodExactOptional<z.ZodString> {
  return optional(what, most === undefined ? z.string() : z.string().max(most));
}

/** The maximum lengths of names and other texts in Refit's own kinds, in characters. API servers have the same limits. */
export const LONGEST = {
  /** The name of an object or a Node. */
  name: 253,
  namespace: 63,
  /** The key of a label consists of a prefix, a slash and a name. */
  labelKey: 317,
  labelValue: 63,
  /** The type of a condition. */
  conditionType: 316,
  reason: 1024,
  /** A reference consists of a kind, a namespace and a name, or of similar parts. */
  reference: 512,
  word: 64,
} as const;
/** The names that objects such as Secrets may have: DNS subdomain names. */
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** The names that namespaces may have: DNS labels. */
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * Returns the schema of the name of another object, such as a Secret. The schema refuses only names that no object can
 * have.
 */
export function nameOfObject(what: string): z.ZodString {
  return z
    .string()
    .max(LONGEST.name)
    .regex(
      SUBDOMAIN,
      'must consist of lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit',
    )
    .describe(what);
}

/** Returns the schema of the name of a namespace. */
export function nameOfNamespace(what: string): z.ZodString {
  return z
    .string()
    .max(LONGEST.namespace)
    .regex(
      DNS_LABEL,
      'must consist of lower-case letters, digits and hyphens, and begin and end with a letter or digit',
    )
    .describe(what);
}

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

/**
 * Returns the schema of an optional integer within the limits of the Go type `format`. Use `whole` for a field that has narrower limits.
 */
export function integer(format: 'int32' | 'int64', what: string): z.ZodExactOptional<z.ZodInt> {
  return optional(what, z.int().meta({ format }));
}

export function whole(what: string, most = Number.MAX_SAFE_INTEGER): z.ZodExactOptional<z.ZodInt> {
  return optional(what, z.int().min(0).max(most));
}

export function choice<const T extends string>(what: string, ...values: readonly T[]) {
  return optional(what, z.enum(values));
}

/** Marks a list of conditions, which has at most one condition of each type. */
export const BY_TYPE = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] };

export interface CustomKind {
  readonly resource: Resource;
  /**
   * The schema of all fields except `apiVersion`, `kind` and `metadata`. If the schema has `status`, the CRD makes
   * `status` a subresource.
   */
  readonly schema: z.ZodObject;
  /** A wrong name of the kind that users find in documents. No API server has it. */
  readonly misnomer?: string;
}
