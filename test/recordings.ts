/** Reading what was recorded from real clusters: the shapes of the original CRDs, objects that they hold, and what k0s wrote. */
import { readFileSync } from 'node:fs';
import type { KubeObject } from '../src/kube/resources.ts';
import { isRecord } from '../src/util/json.ts';

export interface Shape {
  /** Of the CRD. */
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** A custom object, of whatever kind. */
export interface CustomObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

/** The original CRDs as an API server gave them back, without descriptions. */
export function recordedShapes(): Shape[] {
  return read('crd-shapes.json') as Shape[];
}

/** The recorded objects of the custom kinds. */
export function recordedObjects(): CustomObject[] {
  return Object.values(read('objects.json') as Record<string, CustomObject>).filter((object) =>
    object.apiVersion?.startsWith('autopilot.k0sproject.io/'),
  );
}

/** One of the recorded objects, of whatever kind, by its name in the file. */
export function recordedObject(name: string): KubeObject {
  const object = (read('objects.json') as Record<string, KubeObject>)[name];
  if (object === undefined) throw new Error(`no object ${name} was recorded`);
  return object;
}

/** One call that changed something, as the API servers logged it, with what matters of the object. */
export interface RecordedWrite {
  /** Seconds after the first Plan's creation. */
  readonly t: number;
  /** The authenticated user. */
  readonly by: string;
  /** The controller whose API server was asked. */
  readonly via: string;
  readonly verb: string;
  /** With the subresource, `nodes/status`. */
  readonly resource: string;
  readonly name: string;
  readonly code: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly body?: unknown;
}

/** What changed something in one recorded situation of a real k0s cluster, in order of time; `name` is that of the file. */
export function recordedWrites(name: string): RecordedWrite[] {
  const lines = text(`${name}.jsonl`).trimEnd().split('\n');
  return lines
    .map((line) => JSON.parse(line) as RecordedWrite)
    .filter(({ verb }) => verb !== undefined);
}

/** What was recorded of k0s's own agent beside another one, or of how it is switched off; `name` is that of the file. */
export function recordedBeside(name: string): unknown {
  return read(`beside/${name}.json`);
}

function read(name: string): unknown {
  return JSON.parse(text(name));
}

function text(name: string): string {
  return readFileSync(new URL(`fixtures/autopilot/${name}`, import.meta.url), 'utf8');
}

/** A CRD's spec in a form that can be compared: no descriptions, required members in order, no default of the server. */
export function canonicalSpec(spec: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { conversion: _, versions, ...rest } = structuredClone(spec);
  const shaped = (versions as { schema: { openAPIV3Schema: unknown } }[]).map((version) => ({
    ...version,
    schema: { openAPIV3Schema: canonical(version.schema.openAPIV3Schema) },
  }));
  return { ...rest, versions: shaped };
}

/** Only the keyword goes: a member that is *called* description stays. */
function canonical(schema: unknown): unknown {
  if (!isRecord(schema)) return schema;
  const { description: _, ...node } = schema;
  for (const key of ['items', 'additionalProperties'] as const) {
    if (node[key] !== undefined) node[key] = canonical(node[key]);
  }
  if (node['required'] !== undefined) {
    node['required'] = (node['required'] as string[]).toSorted((a, b) => a.localeCompare(b));
  }
  if (isRecord(node['properties'])) {
    const members = Object.entries(node['properties']);
    node['properties'] = Object.fromEntries(
      members.map(([name, inner]) => [name, canonical(inner)]),
    );
  }
  return node;
}
