/** Owns the proof that our autopilot schemas are the original's, no stricter, and that what real clusters hold is accepted. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isRecord, stableStringify } from '../../util/json.ts';
import { definitionOf } from '../crd.ts';
import { CUSTOM_KINDS } from '../registry.ts';

const fixtures = new URL('../../../test/fixtures/autopilot/', import.meta.url);

interface Shape {
  name: string;
  spec: Record<string, unknown>;
}

function fixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));
}

/** Descriptions are ours, and the order of required members means nothing; a member *called* description stays. */
function canonical(schema: unknown): unknown {
  if (!isRecord(schema)) return schema;
  const { description: _, ...node } = schema;
  for (const key of ['items', 'additionalProperties'] as const) {
    if (node[key] !== undefined) node[key] = canonical(node[key]);
  }
  if (Array.isArray(node['required']))
    node['required'] = (node['required'] as string[]).toSorted((a, b) => (a < b ? -1 : 1));
  if (isRecord(node['properties'])) {
    node['properties'] = Object.fromEntries(
      Object.entries(node['properties']).map(([name, inner]) => [name, canonical(inner)]),
    );
  }
  return node;
}

/** Without what the API server adds when it stores a definition. */
function canonicalSpec(spec: Record<string, unknown>): string {
  const { conversion: _, versions, ...rest } = structuredClone(spec);
  const shaped = (versions as { schema: { openAPIV3Schema: unknown } }[]).map((version) => ({
    ...version,
    schema: { openAPIV3Schema: canonical(version.schema.openAPIV3Schema) },
  }));
  return stableStringify({ ...rest, versions: shaped });
}

const shapes = fixture('crd-shapes.json') as Shape[];
const definitions = new Map(CUSTOM_KINDS.map(definitionOf).map((crd) => [crd.metadata.name, crd]));

test.each(shapes)('$name has the shape that real clusters have', ({ name, spec }) => {
  const ours = definitions.get(name);
  expect(JSON.parse(canonicalSpec({ ...ours?.spec }))).toEqual(JSON.parse(canonicalSpec(spec)));
});

test('the comparison sees a field that became required, a new bound and a member that is gone', () => {
  const plan = shapes.find(({ name }) => name.startsWith('plans.'));
  const text = JSON.stringify(plan?.spec);
  const broken = [
    text.replace('"required":["url"]', '"required":["sha256","url"]'),
    text.replace('"default":1,"type":"integer"', '"default":1,"minimum":1,"type":"integer"'),
    text.replace('"forceupdate":{"type":"boolean"},', ''),
  ];
  for (const other of broken) {
    expect(other).not.toBe(text);
    expect(canonicalSpec(JSON.parse(other) as Record<string, unknown>)).not.toBe(canonicalSpec({ ...plan?.spec }));
  }
});

const recorded = Object.entries(fixture('objects.json') as Record<string, { kind?: string; apiVersion?: string }>)
  .filter(([, object]) => object.apiVersion?.startsWith('autopilot.k0sproject.io/'))
  .map(([name, object]) => ({ name, object }));

test.each(recorded)('$name as recorded from a real cluster is accepted and not changed', ({ object }) => {
  const kind = CUSTOM_KINDS.find(({ resource }) => resource.kind === object.kind);
  const { apiVersion: _v, kind: _k, metadata: _m, ...members } = object as unknown as Record<string, unknown>;
  expect(kind?.schema.parse(members)).toEqual(members);
});

test('there are recordings of every kind that has any', () => {
  expect(recorded.map(({ object }) => object.kind)).toEqual(['ControlNode', 'Plan']);
});
