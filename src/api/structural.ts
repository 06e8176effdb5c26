/** Turns a zod schema into the structural OpenAPI v3 schema of a CustomResourceDefinition. */
import { z } from 'zod';
import { isRecord } from '../util/json.ts';

/** A node of a structural schema, as plain JSON so that it keeps all extensions. */
export type StructuralSchema = Readonly<Record<string, unknown>>;

/**
 * The structural form of what `schema` accepts as input: fields with a default are optional.
 * Extensions and formats are given in zod's own metadata, such as `.meta({ format: 'date-time' })`. Whether Kubernetes
 * takes the result, tools/crds/check-structural.ts checks.
 */
export function structural(schema: z.ZodType): StructuralSchema {
  const json: unknown = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    cycles: 'throw',
    reused: 'inline',
  });
  return convert(json);
}

function convert(node: unknown): StructuralSchema {
  if (!isRecord(node)) return {};
  // Closed objects need no keyword: Kubernetes prunes what a schema does not name.
  const { additionalProperties, ...rest } = node;
  const open = additionalProperties !== undefined && additionalProperties !== false;
  const result: Record<string, unknown> = open ? { ...rest, additionalProperties } : rest;
  dropSafeIntegerBounds(result);
  if (isRecord(result['properties'])) {
    result['properties'] = Object.fromEntries(
      Object.entries(result['properties']).map(([name, inner]) => [name, convert(inner)]),
    );
  }
  if (open) result['additionalProperties'] = convert(additionalProperties);
  if (result['items'] !== undefined) result['items'] = convert(result['items']);
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
