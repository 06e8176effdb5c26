/** Owns creating and replacing objects: the order of checks, optimistic concurrency, and what the server sets itself. */
import { randomInt, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { checkStoredSize } from './body.ts';
import type { Cluster, Resource } from './cluster.ts';
import {
  ApiFailure,
  alreadyExists,
  badRequest,
  cause,
  conflict,
  forbidden,
  invalid,
  MODIFIED,
  notFound,
} from './failure.ts';
import { ShapeError } from './go-shape.ts';
import { groupVersion, type Kind } from './kind.ts';
import { keepSystemMetadata } from './metadata.ts';
import type { Target, WriteOptions } from './request.ts';
import { type ApiObject, keyOf, Version } from './store.ts';

/** What a write did: the object as it is now, and what the client should be warned about. */
export interface Written {
  readonly version: Version;
  readonly created: boolean;
  readonly warnings: readonly string[];
}

/** Reads a decoded body as an object of the kind; refuses other kinds, wrong types and, if asked to, unknown members. */
export function readObject(
  kind: Kind,
  body: Record<string, unknown>,
  options: WriteOptions,
): { object: ApiObject; warnings: string[] } {
  checkType(kind, body);
  const unknown: string[] = [];
  let object: ApiObject;
  try {
    object = kind.read(body, unknown);
  } catch (error) {
    if (error instanceof ShapeError)
      throw badRequest(`${cannotBeHandled(kind, kind.kind, kind.version)}: ${error.message}`);
    throw error;
  }
  const warnings = unknown.map((path) => `unknown field "${path}"`);
  if (options.strict && warnings.length > 0) {
    throw badRequest(
      `${cannotBeHandled(kind, kind.kind, kind.version)}: strict decoding error: ${warnings.join(', ')}`,
    );
  }
  return { object, warnings: options.warn ? warnings : [] };
}

const cannotBeHandled = (kind: Kind, found: string, version: string): string =>
  `${found} in version "${version}" cannot be handled as a ${kind.kind}`;

/** Scheme location that kube-apiserver 1.36 prints; part of the text, not of any code here. */
const SCHEME = 'in scheme "pkg/runtime/scheme.go:111"';

function checkType(kind: Kind, { apiVersion, kind: found }: Record<string, unknown>): void {
  const givenVersion = typeof apiVersion === 'string' && apiVersion !== '' ? apiVersion : groupVersion(kind);
  const givenKind = typeof found === 'string' && found !== '' ? found : kind.kind;
  if (givenVersion === groupVersion(kind) && givenKind === kind.kind) return;
  const version = givenVersion.split('/').at(-1) ?? '';
  if (!kind.builtin) {
    if (givenVersion !== groupVersion(kind)) {
      const expected = groupVersion(kind);
      throw badRequest(
        `the API version in the data (${givenVersion}) does not match the expected API version (${expected})`,
      );
    }
    throw badRequest(
      `${cannotBeHandled(kind, givenKind, version)}: no kind "${givenKind}" is registered for version "${givenVersion}" ${SCHEME}`,
    );
  }
  throw badRequest(
    `${cannotBeHandled(kind, givenKind, version)}: no kind "${givenKind}" is registered for version "${givenVersion}" ${SCHEME}`,
  );
}

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
  metadata.name ??= '';
  if (metadata.name === '' && metadata.generateName) metadata.name = `${metadata.generateName}${nameSuffix()}`;
  metadata.uid = randomUUID();
  metadata.creationTimestamp = cluster.timestamp();
  for (const own of ['generation', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink'] as const) {
    delete (metadata as unknown as Record<string, unknown>)[own];
  }
  kind.prepare(object, undefined);
  const causes = kind.validate(object, undefined);
  if (causes.length > 0) throw invalid(kind, metadata.name, causes);
  if (metadata.resourceVersion !== undefined) {
    throw new ApiFailure(500, '', 'resourceVersion should not be set on objects to be created');
  }
  const key = keyOf(namespace, metadata.name);
  if (collection.get(key)) throw alreadyExists(kind, metadata.name);
  checkStoredSize(JSON.stringify(object));
  return options.dryRun ? new Version(key, 0, object) : collection.put(key, object);
}

function placeInNamespace(kind: Kind, { metadata }: ApiObject, namespace: string | undefined): void {
  if (!kind.namespaced) {
    delete metadata.namespace;
    return;
  }
  if ((metadata.namespace ?? namespace) !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (namespace !== undefined) metadata.namespace = namespace;
}

/** The admission plug-in NamespaceLifecycle: nothing new in a namespace that is missing or going away. */
function checkNamespace(cluster: Cluster, kind: Kind, namespace: string, name: string): void {
  const namespaces = cluster.resource('', 'namespaces');
  const found = namespaces.collection.get(namespace);
  if (!found) throw notFound(namespaces.kind, namespace);
  if (found.object.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `namespace ${namespace} is being terminated`;
  throw forbidden(kind, name, why, { reason: 'NamespaceTerminating', message, field: 'metadata.namespace' });
}

/** Five letters or digits, none of which can be misread or make a word. */
function nameSuffix(): string {
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
  return Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join('');
}

/** `precondition` is a PUT's: there a wrong uid is a conflict, in a patch it is an attempt to change the uid. */
export interface Replacement {
  readonly object: ApiObject;
  readonly subresource: string | undefined;
  readonly options: WriteOptions;
}

export function replaceObject(resource: Resource, old: Version, replacement: Replacement): Version {
  const { kind, collection } = resource;
  const { object, subresource, options } = replacement;
  const { name } = old.object.metadata;
  if (kind.namespaced) object.metadata.namespace ??= old.object.metadata.namespace ?? '';
  else delete object.metadata.namespace;
  if (object.metadata.resourceVersion === undefined) {
    if (!kind.unconditionalUpdate) throw unconditional(kind, name);
    object.metadata.resourceVersion = String(old.revision);
  }
  if (object.metadata.resourceVersion !== String(old.revision)) throw conflict(kind, name, MODIFIED);
  keepSystemMetadata(object.metadata, old.object.metadata);
  if (subresource === 'status') kind.prepareStatus(object, old.object);
  else kind.prepare(object, old.object);
  const causes = kind.validate(object, old.object);
  if (causes.length > 0) throw invalid(kind, name, causes);
  checkStoredSize(JSON.stringify(object));
  if (isDeepStrictEqual(object, old.object)) return old;
  if (isFinallyGone(object)) {
    if (!options.dryRun) collection.remove(old);
    return new Version(old.key, old.revision, object);
  }
  return options.dryRun ? new Version(old.key, old.revision, object) : collection.put(old.key, object);
}

/** An object whose deletion has begun goes away with its last finalizer, unless it was given time to end. */
function isFinallyGone({ metadata }: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}

function unconditional(kind: Kind, name: string): ApiFailure {
  const causes = [cause.invalid('metadata.resourceVersion', 0, 'must be specified for an update')];
  return invalid({ ...kind, kind: kind.plural }, name, causes);
}

/** What a PUT checks before anything else about an object that exists. */
export function checkReplacement(kind: Kind, object: ApiObject, target: Target): void {
  const { name: url = '', namespace } = target;
  const given = object.metadata.name ?? '';
  if (given === '') {
    throw badRequest(`the name of the object (${url} based on URL) was undeterminable: name must be provided`);
  }
  if (given !== url) {
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${url})`);
  }
  const own = object.metadata.namespace;
  if (kind.namespaced && own !== undefined && own !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

export function checkUid(kind: Kind, object: ApiObject, old: Version): void {
  const { uid } = object.metadata;
  const actual = old.object.metadata.uid ?? '';
  if (uid === undefined || uid === actual) return;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${actual}`;
  const key = `/registry/${kind.plural === 'nodes' ? 'minions' : kind.plural}/${old.key}`;
  const error = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
  throw conflict(kind, object.metadata.name, error);
}
