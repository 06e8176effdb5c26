/**
 * The schemas of the kinds that the server publishes. The schemas of built-in kinds are recorded, and the schemas of
 * custom kinds come from their definitions.
 */
import { readFileSync } from 'node:fs';
import { isRecord } from '../../../src/util/json.ts';
import type { Kind } from '../kinds/kind.ts';

/** A schema in the form of an OpenAPI document. */
export type OpenApiSchema = Readonly<Record<string, unknown>>;
export type OpenApiSchemas = Readonly<Record<string, OpenApiSchema>>;

/**
 * The schemas were recorded from kube-apiserver, without their descriptions. test/conformance/openapi.test.ts compares
 * them with a real server, and updates the file with `--update`.
 */
const FILE = new URL('builtin-schemas.json', import.meta.url);
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
/** The schemas that are in the documents of every version. */
const COMMON = ['DeleteOptions', 'Patch', 'Status', 'ObjectMeta', 'ListMeta'].map(
  (name) => `${META}.${name}`,
);
const PREFIX = '#/components/schemas/';

let recorded: OpenApiSchemas | undefined;

export function builtinSchemas(): OpenApiSchemas {
  recorded ??= JSON.parse(readFileSync(FILE, 'utf8')) as OpenApiSchemas;
  return recorded;
}

/** A reference to a schema of the same document. */
export const refTo = (name: string): { $ref: string } => ({ $ref: `${PREFIX}${name}` });
export const metaRef = (name: string): { $ref: string } => refTo(`${META}.${name}`);

/** The name of the schema of a kind in the documents. */
export function schemaName(kind: Kind, name = kind.kind): string {
  if (!kind.builtin) return [...kind.group.split('.').toReversed(), kind.version, name].join('.');
  const found = Object.entries(builtinSchemas()).find(([, schema]) =>
    describes(schema, kind, name),
  );
  return found?.[0] ?? '';
}

function describes(schema: OpenApiSchema, { group, version }: Kind, wanted: string): boolean {
  const kinds = schema['x-kubernetes-group-version-kind'];
  if (!Array.isArray(kinds) || kinds.length !== 1) return false;
  const [only] = kinds as Record<string, unknown>[];
  return only?.['group'] === group && only['version'] === version && only['kind'] === wanted;
}

/** The schemas of these kinds and of their lists, with all schemas to which they refer. */
export function schemasOf(kinds: readonly Kind[]): Record<string, OpenApiSchema> {
  const own = Object.fromEntries(kinds.filter(({ builtin }) => !builtin).flatMap(customSchemas));
  const roots = kinds.flatMap((kind) => [schemaName(kind), schemaName(kind, kind.listKind)]);
  const all = { ...builtinSchemas(), ...own };
  return closure(all, [...roots, ...COMMON]);
}

/** The schemas with these names, and all schemas to which they refer, by name. */
export function closure(
  all: OpenApiSchemas,
  roots: readonly string[],
): Record<string, OpenApiSchema> {
  const found = new Map<string, OpenApiSchema>();
  const open = [...roots];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const schema = all[name];
    if (schema === undefined || found.has(name)) continue;
    found.set(name, schema);
    open.push(...referencesOf(schema));
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function referencesOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesOf);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([member, inner]) =>
    member === '$ref' && typeof inner === 'string'
      ? [inner.slice(PREFIX.length)]
      : referencesOf(inner),
  );
}

const TYPE_MEMBERS = { apiVersion: { type: 'string' }, kind: { type: 'string' } };

/**
 * Adds the alternatives integer and string to each int-or-string value, unless the definition has its own alternatives.
 */
function withAlternatives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAlternatives);
  if (!isRecord(value)) return value;
  const inner = Object.entries(value).map(([key, each]) => [key, withAlternatives(each)]);
  const result = Object.fromEntries(inner) as Record<string, unknown>;
  if (result['x-kubernetes-int-or-string'] !== true || 'anyOf' in result) return result;
  return { ...result, anyOf: [{ type: 'integer' }, { type: 'string' }] };
}

function customSchemas(kind: Kind): [string, OpenApiSchema][] {
  const schema = kind.schema ?? {};
  const { group, version } = kind;
  const typed = (name: string): object => ({
    'x-kubernetes-group-version-kind': [{ group, kind: name, version }],
  });
  const withMeta = (name: string): object => ({
    ...TYPE_MEMBERS,
    metadata: { allOf: [metaRef(name)] },
  });
  const published = withAlternatives(schema) as OpenApiSchema & { properties?: object };
  const object = {
    ...published,
    properties: { ...published.properties, ...withMeta('ObjectMeta') },
    ...typed(kind.kind),
  };
  const list = {
    type: 'object',
    required: ['items'],
    properties: {
      ...withMeta('ListMeta'),
      items: { type: 'array', items: refTo(schemaName(kind)) },
    },
    ...typed(kind.listKind),
  };
  return [
    [schemaName(kind), object],
    [schemaName(kind, kind.listKind), list],
  ];
}
