/** Creates and replaces objects: the order of checks, optimistic concurrency, and the fields that the server sets. */
import { randomInt } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { checkStoredSize } from '../body.ts';
import type { Cluster, Resource } from '../cluster.ts';
import {
  ApiFailure,
  alreadyExists,
  badRequest,
  cause,
  conflict,
  forbidden,
  invalid,
  notFound,
} from '../failure.ts';
import { groupVersion, type Kind } from '../kinds/kind.ts';
import type { Target, WriteOptions } from '../request.ts';
import { ShapeError } from '../schema/go-shape.ts';
import { trackUpdate, type Writer } from '../schema/ownership.ts';
import { type ApiObject, keyOf, Version } from '../store.ts';
import { keepSystemMetadata, validateMetadata, validateMetadataUpdate } from './metadata.ts';

/** Reads a decoded body as an object of the kind; refuses other kinds, wrong types and, if asked to, unknown members. */
export function readObject(
  kind: Kind,
  body: Record<string, unknown>,
  { strict, warnings }: WriteOptions,
): ApiObject {
  checkType(kind, body);
  const unknown: string[] = [];
  const cannot = `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}`;
  try {
    const object = kind.read(body, unknown);
    const faults = unknown.map((path) => `unknown field "${path}"`);
    if (strict && faults.length > 0)
      throw new ShapeError(`strict decoding error: ${faults.join(', ')}`);
    warnings.push(...faults);
    return object;
  } catch (error) {
    if (error instanceof ShapeError) throw badRequest(`${cannot}: ${error.message}`);
    throw error;
  }
}

/** A built-in object may omit its type; a custom object must name it. */
function checkType(kind: Kind, body: Record<string, unknown>): void {
  const expected: Readonly<Record<string, string>> = {
    apiVersion: groupVersion(kind),
    kind: kind.kind,
  };
  for (const [member, right] of Object.entries(expected)) {
    const given = body[member] ?? '';
    if (given === right || (given === '' && kind.builtin)) continue;
    if (given === '')
      throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind})`);
    const found = typeof given === 'string' ? given : JSON.stringify(given);
    if (kind.builtin) throw badRequest(`${member} ${found} cannot be handled as a ${kind.kind}`);
    if (member === 'apiVersion') {
      throw badRequest(
        `the API version in the data (${found}) does not match the expected API version (${right})`,
      );
    }
    const { name = '' } = (body['metadata'] ?? {}) as { name?: string };
    throw invalid({ ...kind, kind: found }, name, [
      cause.invalid(member, found, `must be ${right}`),
    ]);
  }
}

/**
 * Checks and stores a new object, which the caller must not use any more. A dry run stores nothing. Throws 404 if the
 * namespace is missing, 403 if the namespace is being deleted, 409 if the name is taken, and 422 if the object is
 * invalid.
 */
export function createObject(
  cluster: Cluster,
  { kind, collection }: Resource,
  namespace: string | undefined,
  object: ApiObject,
  options: WriteOptions,
): Version {
  const { metadata } = object;
  placeInNamespace(kind, object, namespace);
  if (namespace !== undefined) checkNamespace(cluster, kind, namespace, metadata.name);
  const { generateName = '' } = metadata;
  metadata.name ??=
    generateName === '' ? '' : `${generateName.slice(0, GENERATED_PREFIX)}${nameSuffix()}`;
  metadata.uid = cluster.newUid();
  metadata.creationTimestamp = cluster.timestamp();
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  Reflect.deleteProperty(metadata, 'selfLink');
  kind.prepare(object, undefined);
  const causes = [...validateMetadata(object, kind), ...kind.validate(object, undefined)];
  if (causes.length > 0) throw invalid(kind, metadata.name, causes);
  if (metadata.resourceVersion !== undefined) {
    throw new ApiFailure(500, '', 'resourceVersion should not be set on objects to be created');
  }
  if (!options.applied) trackUpdate(kind, object, undefined, writerOf(cluster, options, undefined));
  const key = keyOf(namespace, metadata.name);
  const present = collection.get(key)?.object.metadata;
  if (present)
    throw alreadyExists(
      kind,
      metadata.name,
      present.deletionTimestamp && 'object is being deleted: ',
    );
  if (options.dryRun) return new Version(key, 0, object);
  checkStoredSize(object);
  return collection.put(key, object);
}

const WRONG_NAMESPACE =
  'the namespace of the provided object does not match the namespace sent on the request';

function placeInNamespace(
  kind: Kind,
  { metadata }: ApiObject,
  namespace: string | undefined,
): void {
  if (!kind.namespaced || namespace === undefined) {
    delete metadata.namespace;
    return;
  }
  metadata.namespace ??= namespace;
  if (metadata.namespace !== namespace) throw badRequest(WRONG_NAMESPACE);
}

/**
 * Does what the admission plug-in NamespaceLifecycle does: refuses new objects in a namespace that is missing or being
 * deleted.
 */
function checkNamespace(cluster: Cluster, kind: Kind, namespace: string, name: string): void {
  const namespaces = cluster.resource('', 'namespaces');
  const found = namespaces.collection.get(namespace);
  if (!found) throw notFound(namespaces.kind, namespace);
  if (found.object.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  throw forbidden(kind, name, why, [
    { reason: 'NamespaceTerminating', message, field: 'metadata.namespace' },
  ]);
}

/** Characters of generateName that are kept, so that the whole name stays a DNS label. */
const GENERATED_PREFIX = 58;

/** Five letters or digits that cannot be misread or form words. */
function nameSuffix(): string {
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
  return Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join('');
}

const MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again';

/**
 * Replaces the main part of an object or, for the subresource `status`, its status. Throws 409 for a stale
 * resourceVersion, and 422 if the object is invalid. If nothing changes, returns `old` itself, without a new revision
 * or an event.
 */
export function replaceObject(
  cluster: Cluster,
  { kind, collection }: Resource,
  old: Version,
  object: ApiObject,
  subresource: string | undefined,
  options: WriteOptions,
): Version {
  const { dryRun, applied } = options;
  const { metadata } = object;
  const before = old.object.metadata;
  if (before.namespace === undefined) delete metadata.namespace;
  else metadata.namespace ??= before.namespace;
  if (metadata.resourceVersion === undefined && !kind.unconditionalUpdate)
    throw unconditional(kind, before.name);
  metadata.resourceVersion ??= String(old.revision);
  if (metadata.resourceVersion !== String(old.revision))
    throw conflict(kind, before.name, MODIFIED);
  keepSystemMetadata(metadata, before);
  if (subresource === 'status') kind.prepareStatus(object, old.object);
  else kind.prepare(object, old.object);
  const causes = [
    ...validateMetadataUpdate(object, old.object, kind),
    ...kind.validate(object, old.object),
  ];
  if (causes.length > 0) throw invalid(kind, before.name, causes);
  if (!applied) trackUpdate(kind, object, old.object, writerOf(cluster, options, subresource));
  if (isDeepStrictEqual(object, old.object)) return old;
  if (!dryRun) checkStoredSize(object);
  const gone = isFinallyGone(object);
  if (gone && !dryRun) collection.remove(old);
  return gone || dryRun
    ? new Version(old.key, old.revision, object)
    : collection.put(old.key, object);
}

const writerOf = (
  cluster: Cluster,
  { manager }: WriteOptions,
  subresource: string | undefined,
): Writer => ({
  manager,
  subresource,
  time: cluster.timestamp(),
});

/** An object whose deletion has begun is removed with its last finalizer, unless it has a grace period. */
function isFinallyGone({ metadata }: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return (
    deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0
  );
}

function unconditional(kind: Kind, name: string): ApiFailure {
  const causes = [cause.invalid('metadata.resourceVersion', 0, 'must be specified for an update')];
  return invalid({ ...kind, kind: kind.plural }, name, causes);
}

/** Checks the name and the namespace of an object that is to replace the object at `target`. This is the first check. */
export function checkAddress(
  kind: Kind,
  { metadata }: ApiObject,
  { name: url = '', namespace }: Target,
): void {
  const { name } = metadata;
  if (!name)
    throw badRequest(
      `the name of the object (${url} based on URL) was undeterminable: name must be provided`,
    );
  if (name !== url)
    throw badRequest(
      `the name of the object (${name}) does not match the name on the URL (${url})`,
    );
  if (kind.namespaced && (metadata.namespace ?? namespace) !== namespace)
    throw badRequest(WRONG_NAMESPACE);
}

/**
 * Checks the uid of a PUT. A wrong uid in a PUT is a conflict. A wrong uid in a patch would be an attempt to change the
 * uid.
 */
export function checkUid(kind: Kind, { metadata }: ApiObject, old: ApiObject | undefined): void {
  const actual = old?.metadata.uid ?? '';
  if (metadata.uid === undefined || metadata.uid === actual) return;
  const why = `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${actual}`;
  throw conflict(kind, metadata.name, why);
}
