/** Field ownership: recorded at every write, and checked by server-side apply. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../../src/util/json.ts';
import { ApiFailure, notImplemented } from '../failure.ts';
import { groupVersion, type Kind } from '../kinds/kind.ts';
import type { ApiObject, ManagedFields, Metadata } from '../store.ts';
import {
  decode,
  encode,
  type FieldSet,
  fieldsOf,
  type Path,
  pathOf,
  removeAt,
  valueAt,
} from './field-set.ts';

/** Who writes, when, and through which subresource. */
export interface Writer {
  readonly manager: string;
  readonly subresource: string | undefined;
  /** In the form of `metav1.Time`. */
  readonly time: string;
}

/** An entry of `managedFields` with its fields decoded. */
interface Owner extends Omit<ManagedFields, 'fieldsV1'> {
  readonly fields: FieldSet;
}

/** The metadata that clients own. The server owns all other metadata, and the type. */
const OWNED_METADATA = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generateName'];

function ownedFields(object: Readonly<Record<string, unknown>> | undefined): FieldSet {
  const { apiVersion: _apiVersion, kind: _kind, metadata = {}, ...members } = object ?? {};
  const owned = Object.entries(metadata as Metadata).filter(([member]) =>
    OWNED_METADATA.includes(member),
  );
  return fieldsOf({ ...(owned.length > 0 && { metadata: Object.fromEntries(owned) }), ...members });
}

const ownersOf = (object: ApiObject | undefined): Owner[] =>
  (object?.metadata.managedFields ?? []).map(({ fieldsV1, ...entry }) => ({
    ...entry,
    fields: decode(fieldsV1),
  }));

/** Replaces the entry of the owner, unless the owner has the same fields as before. */
function withOwner(owners: readonly Owner[], own: Owner): Owner[] {
  const before = owners.find((owner) => isSameOwner(owner, own));
  if (!before) return [...owners, own];
  const now = before.fields.symmetricDifference(own.fields).size === 0 ? before : own;
  return owners.map((owner) => (owner === before ? now : owner));
}

/** Stores what each manager owns, without managers that own nothing. */
function setOwners({ metadata }: Pick<ApiObject, 'metadata'>, owners: readonly Owner[]): void {
  const entries = owners.filter(({ fields }) => fields.size > 0);
  metadata.managedFields = entries.map(({ fields, ...entry }) => ({
    ...entry,
    fieldsV1: encode(fields),
  }));
  if (entries.length === 0) delete metadata.managedFields;
}

function ownerOf(
  kind: Kind,
  { manager, subresource, time }: Writer,
  operation: Owner['operation'],
  fields: FieldSet,
): Owner {
  const about = {
    manager,
    operation,
    apiVersion: groupVersion(kind),
    time,
    fieldsType: 'FieldsV1',
  } as const;
  return { ...about, ...(subresource !== undefined && { subresource }), fields };
}

const isSameOwner = (a: Owner, b: Owner): boolean =>
  a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource;

/** Makes the writer the owner of the fields that `next` changes, and removes these fields from all other owners. */
export function trackUpdate(
  kind: Kind,
  next: ApiObject,
  old: ApiObject | undefined,
  writer: Writer,
): void {
  // A new object is compared with an empty one of its kind: zero values have no owner.
  const base = old ?? kind.blank;
  const now = ownedFields(next);
  const changed = new Set([...now].filter((field) => !sameAt(next, base, pathOf(field))));
  const touched = changed.union(ownedFields(base).difference(now));
  const owners = ownersOf(old);
  if (touched.size === 0) return setOwners(next, owners);
  const left = owners.map((owner) => ({ ...owner, fields: owner.fields.difference(touched) }));
  const own = ownerOf(kind, writer, 'Update', changed);
  const kept = left.find((owner) => isSameOwner(owner, own))?.fields ?? new Set();
  return setOwners(next, withOwner(left, { ...own, fields: kept.union(changed) }));
}

const sameAt = (a: unknown, b: unknown, path: Path): boolean =>
  isDeepStrictEqual(valueAt(a, path), valueAt(b, path));

/**
 * Reports whether applying the field changes nothing. An applied empty map only requires that the live object has a map
 * at this path.
 */
function agrees(applied: unknown, live: unknown, path: Path): boolean {
  const wanted = valueAt(applied, path);
  return sameAt(applied, live, path) || (isRecord(wanted) && isRecord(valueAt(live, path)));
}

/** One server-side apply. */
export interface Configuration {
  readonly applied: Record<string, unknown>;
  readonly writer: Writer;
  /** True if the apply takes fields over from other owners instead of being refused. */
  readonly force: boolean;
}

/** Returns the result of an apply. The caller must still read, check and store it. */
export function applyConfiguration(
  kind: Kind,
  live: ApiObject | undefined,
  configuration: Configuration,
): Record<string, unknown> {
  const { applied, writer, force } = configuration;
  const fields = ownedFields(applied);
  refuseLists(fields, applied);
  const own = ownerOf(kind, writer, 'Apply', fields);
  const owners = ownersOf(live);
  const others = owners.filter((owner) => !isSameOwner(owner, own));
  const differing = new Set([...fields].filter((field) => !agrees(applied, live, pathOf(field))));
  const conflicts = others.flatMap((owner) =>
    [...owner.fields.intersection(differing)].map((field) => ({ owner, field })),
  );
  if (conflicts.length > 0 && !force) throw conflictOf(conflicts);
  const left = owners.map((owner) =>
    others.includes(owner) ? { ...owner, fields: owner.fields.difference(differing) } : owner,
  );
  const before = owners.find((owner) => isSameOwner(owner, own))?.fields ?? new Set();
  const result = structuredClone(live ?? { metadata: {} }) as ApiObject;
  const unowned = others.reduce(
    (set, owner) => set.difference(owner.fields),
    before.difference(fields),
  );
  for (const field of unowned) removeAt(result, pathOf(field));
  overlay(result, applied);
  setOwners(result, withOwner(left, own));
  return result;
}

/**
 * Lists whose items have separate owners in a real server. In this server a list has one owner, so an apply with such a
 * list is refused.
 */
const ASSOCIATIVE = [
  'conditions',
  'addresses',
  'ownerReferences',
  'finalizers',
  'containers',
  'volumes',
  'tolerations',
];

function refuseLists(fields: FieldSet, applied: unknown): void {
  const paths = [...fields].map(pathOf);
  const list = paths.find(
    (path) => Array.isArray(valueAt(applied, path)) && ASSOCIATIVE.includes(path.at(-1) ?? ''),
  );
  if (list) throw notImplemented(`server-side apply of ${list.join('.')}`);
}

function conflictOf(conflicts: readonly { owner: Owner; field: string }[]): ApiFailure {
  const named = conflicts.map(({ owner, field }) => ({
    who: describe(owner),
    field: `.${pathOf(field).join('.')}`,
  }));
  const causes = named.map(({ who, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${who}`,
    field,
  }));
  const managers = [...new Set(named.map(({ who }) => who))].toSorted();
  const lines = managers.flatMap((manager) => {
    const own = named.filter(({ who }) => who === manager);
    return [`conflicts with ${manager}:`, ...own.map(({ field }) => `- ${field}`)];
  });
  const one = `1 conflict: conflict with ${named[0]?.who}: ${named[0]?.field}`;
  const all = named.length === 1 ? one : `${named.length} conflicts: ${lines.join('\n')}`;
  return new ApiFailure(409, 'Conflict', `Apply failed with ${all}`, { causes });
}

function describe({ manager, subresource, operation, apiVersion, time = '' }: Owner): string {
  const who = `"${manager}"${subresource === undefined ? '' : ` with subresource "${subresource}"`}`;
  return operation === 'Update' ? `${who} using ${apiVersion} at ${time}` : who;
}

/** Maps are merged, everything else is replaced. */
function overlay(target: Record<string, unknown>, source: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(source)) {
    const present = target[name];
    if (isRecord(value) && isRecord(present)) overlay(present, value);
    else target[name] = structuredClone(value);
  }
}
