/** PATCH requests: accepted media types, and how each kind of patch changes an object. */
import { isRecord } from '../../../src/util/json.ts';
import { parseText, unsupportedMediaType } from '../body.ts';
import type { Cluster, Resource } from '../cluster.ts';
import { ApiFailure, badRequest, cause, invalid, invalidOptions, notFound } from '../failure.ts';
import type { Kind } from '../kinds/kind.ts';
import { getObject } from '../list.ts';
import { type ApiRequest, flag, type Target, type WriteOptions, writeOptions } from '../request.ts';
import { applyConfiguration } from '../schema/ownership.ts';
import { type ApiObject, keyOf, type Version } from '../store.ts';
import { jsonPatch, mergePatch } from './patch.ts';
import { strategicPatch } from './strategic-patch.ts';
import { checkAddress, createObject, readObject, replaceObject } from './write.ts';

const APPLY = 'application/apply-patch+yaml';

interface Patched {
  readonly version: Version;
  /** True if the object was created. Only server-side apply can create an object. */
  readonly created: boolean;
}

/** Throws 404 for a missing object unless the patch is an apply, and 415 for media types that the kind does not take. */
export function patchObject(
  cluster: Cluster,
  resource: Resource,
  request: ApiRequest,
  target: Target,
): Patched {
  if (request.contentType === APPLY) return applyObject(cluster, resource, request, target);
  const options = writeOptions(request, 'PatchOptions');
  const patch = decodePatch(resource.kind, request);
  const old = getObject(resource, target);
  const object = readPatched(resource.kind, patch(old.object), options);
  checkAddress(resource.kind, object, target);
  const version = replaceObject(cluster, resource, old, object, target.subresource, options);
  return { version, created: false };
}

/** Server-side apply: creates the object, or takes over the fields that the body names. */
function applyObject(
  cluster: Cluster,
  resource: Resource,
  request: ApiRequest,
  target: Target,
): Patched {
  const { kind, collection } = resource;
  const options = { ...writeOptions(request, 'PatchOptions'), applied: true };
  if (!request.query.get('fieldManager')) {
    throw invalidOptions('PatchOptions', [
      cause.required('fieldManager', 'is required for apply patch'),
    ]);
  }
  const applied = parseText(request.body, true, (why) => badRequest(`error decoding YAML: ${why}`));
  if (!isRecord(applied)) throw badRequest('error decoding YAML: the body is no object');
  const old = collection.get(keyOf(target.namespace, target.name ?? ''));
  const { subresource } = target;
  const writer = { manager: options.manager, subresource, time: cluster.timestamp() };
  const configured = readObject(kind, applied, options);
  checkAddress(kind, configured, target);
  if (subresource !== undefined && !old) throw notFound(kind, target.name ?? '');
  const merged = applyConfiguration(kind, old?.object, {
    applied,
    writer,
    force: flag(request.query, 'force'),
  });
  const object = readObject(kind, merged, options);
  const version = old
    ? replaceObject(cluster, resource, old, object, subresource, options)
    : createObject(cluster, resource, target.namespace, object, options);
  return { version, created: old === undefined };
}

/** A function that applies a patch to an object. */
type Patch = (object: ApiObject) => unknown;

function decodePatch(kind: Kind, { contentType, body }: ApiRequest): Patch {
  const accepted = ['application/json-patch+json', 'application/merge-patch+json'];
  if (kind.builtin) accepted.push('application/strategic-merge-patch+json');
  if (!accepted.includes(contentType)) throw unsupportedPatch(kind, accepted);
  const value = parseText(body, false, (why) => badRequest(`error decoding patch: ${why}`));
  if (contentType === accepted[0]) return (object) => jsonPatch(object, value);
  const members = value ?? {};
  if (!isRecord(members)) {
    const found = Array.isArray(members) ? 'array' : typeof members;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${found} into Go value of type map[string]interface {}`,
    );
  }
  return contentType === accepted[1]
    ? (object) => mergePatch(object, members)
    : (object) => strategicPatch(object, members);
}

function unsupportedPatch(kind: Kind, accepted: readonly string[]): ApiFailure {
  if (kind.builtin)
    return new ApiFailure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {});
  return unsupportedMediaType([...accepted, APPLY]);
}

/** Reads the result of a patch. A fault in the result is reported as Invalid, not as a bad request. */
function readPatched(kind: Kind, patched: unknown, options: WriteOptions): ApiObject {
  if (!isRecord(patched)) throw badRequest('error decoding patch: the result is no object');
  try {
    return readObject(kind, patched, options);
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status.code !== 400) throw error;
    const causes = [cause.invalid('patch', JSON.stringify(patched), error.message)];
    const failure = invalid({ group: '', kind: '', plural: '' }, '', causes);
    throw new ApiFailure(422, 'Invalid', failure.message, { causes });
  }
}
