/**
 * The handlers of the verbs. A handler reads what it needs from the request, carries out the verb, and returns the
 * answer.
 */
import { decodeObject } from './body.ts';
import type { Cluster, Resource } from './cluster.ts';
import { notFound } from './failure.ts';
import { evict } from './kinds/eviction.ts';
import {
  getObject,
  listObjects,
  parseRevision,
  selectedObjects,
  tooLargeRevision,
} from './list.ts';
import { jsonReply, objectReply, type Reply } from './reply.ts';
import { type ApiRequest, type Target, writeOptions } from './request.ts';
import { keyOf } from './store.ts';
import { deletedStatus, deleteObject, readDeleteOptions } from './writes/delete.ts';
import { patchObject } from './writes/patch-object.ts';
import { checkAddress, checkUid, createObject, readObject, replaceObject } from './writes/write.ts';

/** Answers one verb on one resource. */
export type Handler = (
  cluster: Cluster,
  resource: Resource,
  request: ApiRequest,
  target: Target,
) => Reply;

/** The handlers by the verb of the request. The router has already checked that the verb fits the path. */
export const HANDLERS: Readonly<Record<string, Handler>> = {
  get(cluster, resource, { query }, target) {
    const wanted = parseRevision(query.get('resourceVersion')) ?? 0;
    if (wanted > cluster.revisions.current)
      throw tooLargeRevision(wanted, cluster.revisions.current);
    return objectReply(200, getObject(resource, target));
  },

  list: (cluster, resource, { query }, target) => ({
    code: 200,
    body: listObjects(cluster, resource, query, target),
  }),

  create(cluster, resource, request, target) {
    const options = writeOptions(request, 'CreateOptions');
    const object = readObject(resource.kind, decodeObject(request, resource.kind.kind), options);
    return objectReply(201, createObject(cluster, resource, target.namespace, object, options));
  },

  update(cluster, resource, request, target) {
    const options = writeOptions(request, 'UpdateOptions');
    const { kind, collection } = resource;
    const object = readObject(kind, decodeObject(request, kind.kind), options);
    checkAddress(kind, object, target);
    const old = collection.get(keyOf(target.namespace, target.name ?? ''));
    if (old === undefined && !kind.createOnUpdate) throw notFound(kind, object.metadata.name);
    checkUid(kind, object, old?.object);
    if (old)
      return objectReply(
        200,
        replaceObject(cluster, resource, old, object, target.subresource, options),
      );
    delete object.metadata.resourceVersion;
    return objectReply(201, createObject(cluster, resource, target.namespace, object, options));
  },

  evict: (cluster, _resource, request, target) => jsonReply(201, evict(cluster, request, target)),

  patch(cluster, resource, request, target) {
    const { created, version } = patchObject(cluster, resource, request, target);
    return objectReply(created ? 201 : 200, version);
  },

  delete(cluster, resource, request, target) {
    const body = request.body === '' ? undefined : decodeObject(request, 'DeleteOptions');
    const options = readDeleteOptions(request.query, body);
    const old = getObject(resource, target);
    const left = deleteObject(cluster, resource, old, options);
    return left ? objectReply(200, left) : jsonReply(200, deletedStatus(resource.kind, old));
  },

  deletecollection(cluster, resource, request, target) {
    const body = request.body === '' ? undefined : decodeObject(request, 'DeleteOptions');
    const options = readDeleteOptions(request.query, body);
    const list = listObjects(cluster, resource, request.query, target);
    for (const version of selectedObjects(resource, request.query, target)) {
      deleteObject(cluster, resource, version, options);
    }
    return { code: 200, body: list };
  },
};
