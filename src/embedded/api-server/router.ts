/** Owns the way from a request to its handler, and from what the handler gives back to the answer. */
import { isRecord } from '../../util/json.ts';
import { decodeObject } from './body.ts';
import type { Cluster, Resource } from './cluster.ts';
import { deletedStatus, deleteObject, deleteOptions } from './delete.ts';
import { discover } from './discovery.ts';
import { ApiFailure, badRequest, methodNotAllowed, noSuchResource, notFound, notImplemented } from './failure.ts';
import { getObject, listObjects, parseRevision, tooLargeRevision } from './list.ts';
import { jsonPatch, mergePatch } from './patch.ts';
import { type ApiRequest, parseTarget, type Target, verbOf, writeOptions } from './request.ts';
import { keyOf, type Version } from './store.ts';
import { checkReplacement, checkUid, createObject, readObject, replaceObject } from './write.ts';

export interface Reply {
  readonly code: number;
  readonly body: string;
  readonly contentType?: string;
  readonly warnings?: readonly string[];
}

/** What a request turned out to be: an answer, or a watch that the caller has to serve. */
export type Outcome = Reply | { readonly watch: Resource; readonly target: Target };

export function route(cluster: Cluster, request: ApiRequest): Outcome {
  const target = parseTarget(request.path);
  if (target === undefined || target.plural === '') return discover(cluster, request.path);
  const resource = findResource(cluster, target);
  const verb = verbOf(request, target.name);
  if (target.subresource !== undefined && !(target.subresource === 'status' && resource.kind.hasStatus)) {
    throw noSuchResource();
  }
  if (verb === 'watch') return { watch: resource, target };
  const handler = HANDLERS[verb];
  if (handler === undefined || (verb === 'create' && target.name !== undefined)) throw methodNotAllowed();
  return handler(cluster, resource, request, target);
}

function findResource(cluster: Cluster, { group, version, plural }: Target): Resource {
  const resource = cluster.find(group, plural);
  if (resource && resource.kind.version === version) return resource;
  if (resource === undefined && isBuiltinGroup(group)) throw notImplemented(`${plural} of the API group "${group}"`);
  throw noSuchResource();
}

/** Groups of Kubernetes itself: what is not served of them exists in a real server. */
const isBuiltinGroup = (group: string): boolean => !group.includes('.') || group.endsWith('.k8s.io');

type Handler = (cluster: Cluster, resource: Resource, request: ApiRequest, target: Target) => Reply;

const HANDLERS: Readonly<Record<string, Handler>> = {
  get(cluster, resource, { query }, target) {
    const wanted = parseRevision(query.get('resourceVersion')) ?? 0;
    const { current } = cluster.revisions;
    if (wanted > current) throw tooLargeRevision(wanted, current);
    return objectReply(200, getObject(resource, target));
  },

  list: (cluster, resource, request, target) => ({ code: 200, body: listObjects(cluster, resource, request, target) }),

  create(cluster, resource, request, target) {
    if (resource.kind.namespaced && target.namespace === undefined) throw methodNotAllowed();
    const options = writeOptions(request, 'CreateOptions');
    const body = decodeObject(request.body, request.contentType, resource.kind);
    const { object, warnings } = readObject(resource.kind, body, options);
    const version = createObject(cluster, resource, target.namespace, object, options);
    return objectReply(201, version, warnings);
  },

  update(cluster, resource, request, target) {
    if (target.name === undefined) throw methodNotAllowed();
    const options = writeOptions(request, 'UpdateOptions');
    const body = decodeObject(request.body, request.contentType, resource.kind);
    const { object, warnings } = readObject(resource.kind, body, options);
    checkReplacement(resource.kind, object, target);
    const { kind, collection } = resource;
    const old = collection.get(keyOf(target.namespace, target.name));
    if (old === undefined) {
      if (!kind.createOnUpdate) throw notFound(kind, target.name);
      delete object.metadata.resourceVersion;
      return objectReply(201, createObject(cluster, resource, target.namespace, object, options), warnings);
    }
    checkUid(kind, object, old);
    const { subresource } = target;
    return objectReply(200, replaceObject(resource, old, { object, subresource, options }), warnings);
  },

  patch(_cluster, resource, request, target) {
    if (target.name === undefined) throw methodNotAllowed();
    const options = writeOptions(request, 'PatchOptions');
    const old = getObject(resource, target);
    const patched = applyPatch(request, old);
    const { object, warnings } = readObject(resource.kind, patched, options);
    checkReplacement(resource.kind, object, target);
    const { subresource } = target;
    return objectReply(200, replaceObject(resource, old, { object, subresource, options }), warnings);
  },

  delete(cluster, resource, request, target) {
    const body =
      request.body === '' ? undefined : decodeObject(request.body, request.contentType, { kind: 'DeleteOptions' });
    const options = deleteOptions(request.query, body);
    const old = getObject(resource, target);
    const left = deleteObject(cluster, resource, old, options);
    if (left) return objectReply(200, left);
    return { code: 200, body: JSON.stringify(deletedStatus(resource.kind, old, target)) };
  },
};

function applyPatch({ contentType, body }: ApiRequest, old: Version): Record<string, unknown> {
  const patch = parsePatch(body);
  const patched = patchBy(contentType, old, patch);
  if (!isRecord(patched)) throw badRequest('error decoding patch: the result is no object');
  return patched;
}

function patchBy(contentType: string, { object }: Version, patch: unknown): unknown {
  switch (contentType) {
    case 'application/merge-patch+json':
      if (isRecord(patch)) return mergePatch(object, patch);
      throw badRequest(
        `error decoding patch: json: cannot unmarshal ${Array.isArray(patch) ? 'array' : typeof patch} into Go value of type map[string]interface {}`,
      );
    case 'application/json-patch+json':
      return jsonPatch(object, patch);
    case 'application/strategic-merge-patch+json':
    case 'application/apply-patch+yaml':
      throw notImplemented(contentType);
    default:
      throw new ApiFailure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {});
  }
}

function parsePatch(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw badRequest('error decoding patch: unexpected end of JSON input');
  }
}

const objectReply = (code: number, version: Version, warnings: readonly string[] = []): Reply => ({
  code,
  body: version.text,
  warnings,
});
