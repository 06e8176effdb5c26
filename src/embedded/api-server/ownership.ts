/** Owns who answers for which fields: kept at every write, and asked by server-side apply. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../util/json.ts';
import { ApiFailure, notImplemented } from './failure.ts';
import { type FieldSet, fieldsOf, leavesOf, minus, sameAt, union, valueAt } from './field-set.ts';
import { groupVersion, type Kind } from './kind.ts';
import type { ApiObject, ManagedFields } from './store.ts';

/** Who writes, when, and through which subresource. */
export interface Writer {
  readonly manager: string;
  readonly subresource: string | undefined;
  /** In the form of `metav1.Time`. */
  readonly time: string;
}

/** Metadata that people own; the server answers for the rest, and for type and name. */
const OWNED_METADATA = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generateName'];

const isOwned = ([root, member = '']: readonly string[]): boolean =>
  root === 'metadata' ? OWNED_METADATA.includes(member) : root !== 'apiVersion' && root !== 'kind';

const fieldsIn = (object: unknown): FieldSet => fieldsOf(object, isOwned);

const setOf = (entry: ManagedFields | undefined): FieldSet => (entry?.fieldsV1 ?? {}) as FieldSet;

type Operation = ManagedFields['operation'];

const isEntryOf =
  ({ manager, subresource }: Writer, operation: Operation) =>
  (entry: ManagedFields): boolean =>
    entry.manager === manager && entry.operation === operation && entry.subresource === subresource;

/** The entries with that of the writer replaced; entries that own nothing any more are dropped. */
function withEntry(
  entries: readonly ManagedFields[],
  kind: Kind,
  writer: Writer,
  operation: Operation,
  fields: FieldSet,
): ManagedFields[] {
  const { manager, subresource, time } = writer;
  const apiVersion = groupVersion(kind);
  const own = {
    manager,
    operation,
    apiVersion,
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
    ...(subresource !== undefined && { subresource }),
  } as const;
  const others = entries.filter((entry) => !isEntryOf(writer, operation)(entry));
  return [...others, own].filter(({ fieldsV1 }) => Object.keys(fieldsV1).length > 0);
}

/** Gives the fields that `next` changes to the writer, and takes them from everybody else. */
export function trackUpdate(kind: Kind, next: ApiObject, old: ApiObject | undefined, writer: Writer): void {
  const before = old?.metadata.managedFields ?? [];
  const changed = fieldsOf(next, (path) => isOwned(path) && !sameAt(next, old, path));
  const touched = union(changed, minus(fieldsIn(old), fieldsIn(next)));
  const entries = before.map((entry) => ({ ...entry, fieldsV1: minus(setOf(entry), touched) }));
  const own = setOf(entries.find(isEntryOf(writer, 'Update')));
  const unchanged = isDeepStrictEqual(touched, {});
  const after = unchanged ? before : withEntry(entries, kind, writer, 'Update', union(own, changed));
  if (after.length > 0) next.metadata.managedFields = [...after];
  else delete next.metadata.managedFields;
}

/** What an apply makes of the live object, if any: still to be read, checked and stored. */
export function applyConfiguration(
  kind: Kind,
  live: ApiObject | undefined,
  applied: Record<string, unknown>,
  writer: Writer,
  force: boolean,
): Record<string, unknown> {
  const fields = fieldsIn(applied);
  refuseLists(leavesOf(fields), applied);
  const entries = live?.metadata.managedFields ?? [];
  const mine = isEntryOf(writer, 'Apply');
  const others = entries.filter((entry) => !mine(entry));
  const conflicts = others.flatMap((entry) =>
    leavesOf(setOf(entry))
      .filter((path) => valueAt(applied, path) !== undefined && !sameAt(applied, live, path))
      .map((path) => ({ entry, path })),
  );
  if (conflicts.length > 0 && !force) throw conflictOf(conflicts);
  const lost = fieldsOf(applied, (path) => conflicts.some((conflict) => isDeepStrictEqual(conflict.path, path)));
  const left = others.map((entry) => ({ ...entry, fieldsV1: minus(setOf(entry), lost) }));
  const result: Record<string, unknown> = structuredClone(live ?? {});
  const unowned = left.reduce((set, entry) => minus(set, setOf(entry)), minus(setOf(entries.find(mine)), fields));
  for (const path of leavesOf(unowned)) removeAt(result, path);
  overlay(result, applied);
  const metadata = result['metadata'] as ApiObject['metadata'];
  metadata.managedFields = withEntry(left, kind, writer, 'Apply', fields);
  return result;
}

/** Lists whose items are owned one by one in a real server; here a list has one owner, so these are refused. */
const ASSOCIATIVE = [
  'conditions',
  'addresses',
  'ownerReferences',
  'finalizers',
  'containers',
  'volumes',
  'tolerations',
];

function refuseLists(paths: readonly (readonly string[])[], applied: unknown): void {
  const list = paths.find((path) => Array.isArray(valueAt(applied, path)) && ASSOCIATIVE.includes(path.at(-1) ?? ''));
  if (list) throw notImplemented(`server-side apply of ${list.join('.')}`);
}

function conflictOf(conflicts: readonly { entry: ManagedFields; path: readonly string[] }[]): ApiFailure {
  const named = conflicts.map(({ entry, path }) => ({ who: describe(entry), field: `.${path.join('.')}` }));
  const causes = named.map(({ who, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${who}`,
    field,
  }));
  const [first] = named;
  const whos = [...new Set(named.map(({ who }) => who))].toSorted();
  const lists = whos.map((who) =>
    [`conflicts with ${who}:`, ...named.filter((one) => one.who === who).map(({ field }) => `- ${field}`)].join('\n'),
  );
  const details =
    named.length === 1
      ? `1 conflict: conflict with ${first?.who}: ${first?.field}`
      : `${named.length} conflicts: ${lists.join('\n')}`;
  return new ApiFailure(409, 'Conflict', `Apply failed with ${details}`, { causes });
}

function describe({ manager, subresource, operation, apiVersion, time = '' }: ManagedFields): string {
  const who =
    subresource === undefined
      ? JSON.stringify(manager)
      : `${JSON.stringify(manager)} with subresource "${subresource}"`;
  return operation === 'Update' ? `${who} using ${apiVersion} at ${time}` : who;
}

function removeAt(holder: Record<string, unknown>, path: readonly string[]): void {
  const parent = valueAt(holder, path.slice(0, -1));
  if (isRecord(parent)) delete parent[path.at(-1) ?? ''];
}

/** Maps are merged, everything else is replaced. */
function overlay(target: Record<string, unknown>, source: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(source)) {
    const present = target[name];
    if (isRecord(value) && isRecord(present)) overlay(present, value);
    else target[name] = structuredClone(value);
  }
}
