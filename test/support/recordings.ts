/** Reads the recordings of real clusters: the shapes of the original CRDs, their objects, and the writes of k0s. */
import { readFileSync } from 'node:fs';
import type { KubeObject } from '../../src/kube/resources.ts';
import { isRecord } from '../../src/util/json.ts';

export interface Shape {
  /** The name of the CRD. */
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** A custom object, of whatever kind. */
export interface CustomObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

/** Returns the original CRDs as an API server returned them, without descriptions. */
export function recordedShapes(): Shape[] {
  return read('crd-shapes.json') as Shape[];
}

/** The recorded objects of the custom kinds. */
export function recordedObjects(): CustomObject[] {
  return Object.values(read('objects.json') as Record<string, CustomObject>).filter((object) =>
    object.apiVersion?.startsWith('autopilot.k0sproject.io/'),
  );
}

/** Returns one recorded object of any kind, by its name in the file. */
export function recordedObject(name: string): KubeObject {
  const object = (read('objects.json') as Record<string, KubeObject>)[name];
  if (object === undefined) throw new Error(`no object ${name} was recorded`);
  return object;
}

/** One call that changed something, as the API servers logged it, with the relevant parts of the object. */
export interface RecordedWrite {
  /** Seconds after the first Plan's creation. */
  readonly t: number;
  /** The authenticated user. */
  readonly by: string;
  /** The controller whose API server received the call. */
  readonly via: string;
  readonly verb: string;
  /** The plural name with the subresource, such as `nodes/status`. */
  readonly resource: string;
  readonly name: string;
  readonly code: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly body?: unknown;
}

/**
 * Returns the calls that changed something in one recorded situation of a real k0s cluster, in order of time. `name` is
 * the name of the file.
 */
export function recordedWrites(name: string): RecordedWrite[] {
  const lines = text(`${name}.jsonl`).trimEnd().split('\n');
  return lines
    .map((line) => JSON.parse(line) as RecordedWrite)
    .filter(({ verb }) => verb !== undefined);
}

/**
 * Returns a recording of k0s's own agent that runs together with another agent, or a recording of how k0s's agent is
 * switched off. `name` is the name of the file.
 */
export function recordedBeside(name: string): unknown {
  return read(`beside/${name}.json`);
}

/** The recording of one signal on one node on which both k0s's own agent and another agent worked. */
export interface RecordedRace {
  readonly node: string;
  /** The statuses in the order in which watches first showed them. Any agent may have written them. */
  readonly statuses: readonly string[];
  /** The statuses that k0s's own agent wrote according to its log. It does not log `ApplyingUpdate` and `Completed`. */
  readonly written: readonly string[];
  /** The statuses that k0s's own agent tried to write and that the API server refused. */
  readonly refused: readonly string[];
  /** True if k0s's own agent did not find its download at `ApplyingUpdate`, and tried again. */
  readonly missedDownload: boolean;
}

interface WatchLine {
  readonly kind?: string;
  readonly name?: string;
  readonly sig?: string | null;
  readonly node?: string;
  readonly log?: string;
  readonly error?: string;
}

/**
 * Returns the race on each node that was signalled during the recording. A recording without log lines does not show
 * which agent wrote a status.
 */
export function recordedRaces(name: string): RecordedRace[] {
  const lines = text(`beside/${name}.jsonl`).trimEnd().split('\n');
  const events = lines.map((line) => JSON.parse(line) as WatchLine);
  const fresh = new Map<string, { created: string; statuses: Set<string> }>();
  for (const { kind, name: node, sig } of events) {
    if (kind === 'Plan' || node === undefined || typeof sig !== 'string') continue;
    const { created, status } = JSON.parse(sig) as {
      created: string;
      status?: { status: string };
    };
    const known = fresh.get(node);
    // The watches of several API servers show the same change more than once, and at different times.
    if (status === undefined && known?.created !== created)
      fresh.set(node, { created, statuses: new Set() });
    else if (status !== undefined && known?.created === created) known.statuses.add(status.status);
  }
  return [...fresh].map(([node, { statuses }]) => ({
    node,
    statuses: [...statuses],
    ...saidOn(events.filter((event) => event.node === node)),
  }));
}

/** Reads the log of k0s's own agent on one node. */
function saidOn(
  lines: readonly WatchLine[],
): Pick<RecordedRace, 'written' | 'refused' | 'missedDownload'> {
  const found = (text: string | undefined, pattern: RegExp): string[] => {
    const [, status] = pattern.exec(text ?? '') ?? [];
    return status === undefined ? [] : [status];
  };
  const refused = lines.flatMap(({ error }) =>
    found(error, /^failed to update signal node to status '(\w+)'/),
  );
  return {
    written: lines
      .flatMap(({ log }) => found(log, /^Updating signaling response to '(\w+)'/))
      .filter((status) => !refused.includes(status)),
    refused,
    missedDownload: lines.some(({ error }) => error?.startsWith('unable to find update file')),
  };
}

function read(name: string): unknown {
  return JSON.parse(text(name));
}

function text(name: string): string {
  return readFileSync(new URL(`../fixtures/autopilot/${name}`, import.meta.url), 'utf8');
}

/**
 * Returns a CRD's spec in a form that can be compared: without descriptions, with the required members in a fixed
 * order, and without defaults of the API server. The printer columns are also removed, because they only change what
 * kubectl shows, and Refit has more columns.
 */
export function canonicalSpec(spec: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { conversion: _, versions, ...rest } = structuredClone(spec);
  const shaped = (
    versions as { additionalPrinterColumns?: unknown; schema: { openAPIV3Schema: unknown } }[]
  ).map(({ additionalPrinterColumns: _columns, ...version }) => ({
    ...version,
    schema: { openAPIV3Schema: canonical(version.schema.openAPIV3Schema) },
  }));
  return { ...rest, versions: shaped };
}

/**
 * Returns the canonical shape of our definition. The definition does not require the fields that k0s requires although
 * the documentation of k0s calls them optional.
 */
export function widenedSpec(spec: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const text = JSON.stringify(canonicalSpec(spec)).replace(
    '"required":["commands","id","timestamp"]',
    '"required":["commands"]',
  );
  return JSON.parse(text) as Record<string, unknown>;
}

/** Removes only the keyword `description`. A member with the name `description` stays. */
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
