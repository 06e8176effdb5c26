/** Checks what Kubernetes demands of the schema in a CustomResourceDefinition, before an API server refuses it. */
import { isRecord } from '../../src/util/json.ts';
import type { StructuralSchema } from './definition.ts';

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

/** @throws Error that names the field, if Kubernetes would refuse the schema. */
export function checkStructural(schema: StructuralSchema, path: readonly string[] = []): void {
  checkNode(schema, path);
  const { properties, additionalProperties, items } = schema;
  const inner = {
    ...(isRecord(properties) ? properties : {}),
    '*': additionalProperties,
    '[]': items,
  };
  for (const [name, each] of Object.entries(inner))
    if (isRecord(each)) checkStructural(each, [...path, name]);
}

function checkNode(node: StructuralSchema, path: readonly string[]): void {
  const unknown = Object.keys(node).find(
    (key) => !KEYWORDS.has(key) && !key.startsWith('x-kubernetes-'),
  );
  if (unknown !== undefined)
    refuse(path, `uses ${unknown}, which a structural schema must not contain`);
  const intOrString = node['x-kubernetes-int-or-string'] === true;
  if (node['anyOf'] !== undefined && !intOrString)
    refuse(path, 'is a union: use one object with optional members');
  const typed =
    node['type'] !== undefined ||
    intOrString ||
    node['x-kubernetes-preserve-unknown-fields'] === true;
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
