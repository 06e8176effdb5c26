/** Turns a zod schema into the structural OpenAPI v3 schema of a CustomResourceDefinition. */
import { z } from 'zod';
import { isRecord } from '../util/json.ts';

/** A node of a structural schema, as plain JSON so that it keeps all extensions. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

/** Keywords that the API server allows at every depth, besides `x-kubernetes-*`. */
const KEYWORDS = new Set(
  [
    'type description default nullable format enum pattern properties required additionalProperties items anyOf',
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf',
    'minLength maxLength minItems maxItems minProperties maxProperties',
  ].flatMap((line) => line.split(' ')),
);

/** The API server uses RE2, which has neither look-around nor back-references. */
const NOT_RE2 = /\(\?<?[=!]|\\[1-9]|\\k</;

/**
 * The structural form of what `schema` accepts as input: fields with a default are optional.
 * Extensions and formats are given in zod's own metadata, such as `.meta({ format: 'date-time' })`.
 *
 * @throws Error naming the field, where Kubernetes would refuse the schema.
 */
export function structural(schema: z.ZodType): StructuralSchema {
  const json: unknown = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    cycles: 'throw',
    reused: 'inline',
  });
  return convert(json, []);
}

function convert(node: unknown, path: readonly string[]): StructuralSchema {
  if (!isRecord(node)) return refuse(path, 'is no schema');
  // Closed objects need no keyword: Kubernetes prunes what a schema does not name.
  const { additionalProperties, ...rest } = node;
  const open = additionalProperties !== undefined && additionalProperties !== false;
  const result: Record<string, unknown> = open ? { ...rest, additionalProperties } : rest;
  dropSafeIntegerBounds(result);
  check(result, path);
  if (isRecord(result['properties'])) {
    result['properties'] = Object.fromEntries(
      Object.entries(result['properties']).map(([name, inner]) => [name, convert(inner, [...path, name])]),
    );
  }
  if (open) result['additionalProperties'] = convert(additionalProperties, [...path, '*']);
  if (result['items'] !== undefined) result['items'] = convert(result['items'], [...path, '[]']);
  if (result['x-kubernetes-int-or-string'] === true) {
    delete result['type'];
    result['anyOf'] = [{ type: 'integer' }, { type: 'string' }];
  }
  return result;
}

/** zod bounds every integer by what a JavaScript number holds; Kubernetes takes the whole of int64. */
function dropSafeIntegerBounds(node: Record<string, unknown>): void {
  if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum'];
  if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum'];
}

function check(node: StructuralSchema, path: readonly string[]): void {
  const unknown = Object.keys(node).find((key) => !KEYWORDS.has(key) && !key.startsWith('x-kubernetes-'));
  if (unknown !== undefined) refuse(path, `uses ${unknown}, which no structural schema may`);
  const intOrString = node['x-kubernetes-int-or-string'] === true;
  if (node['anyOf'] !== undefined && !intOrString) refuse(path, 'is a union: use one object with optional members');
  const typed = node['type'] !== undefined || intOrString || node['x-kubernetes-preserve-unknown-fields'] === true;
  if (!typed) refuse(path, 'has no type');
  if (node['properties'] !== undefined && node['additionalProperties'] !== undefined)
    refuse(path, 'mixes named members with a map');
  const pattern = node['pattern'];
  if (typeof pattern === 'string' && NOT_RE2.test(pattern))
    refuse(path, `has the pattern ${pattern}, which RE2 does not know`);
}

function refuse(path: readonly string[], why: string): never {
  throw new Error(`not a structural schema: ${path.join('.') || 'the root'} ${why}`);
}
