/** Owns the way from a request to its handler. */
import { isRecord } from '../../util/json.ts';
import { decodeObject, parseText, unsupportedMediaType } from './body.ts';
import type { Cluster, Resource } from './cluster.ts';
import { deletedStatus, deleteObject, readDeleteOptions } from './delete.ts';
import { discover } from './discovery.ts';
import { evict } from './eviction.ts';
import {
  ApiFailure,
  badRequest,
  cause,
  invalid,
  invalidOptions,
  methodNotAllowed,
  noSuchResource,
  notFound,
  notImplemented,
} from './failure.ts';
import type { Kind } from './kind.ts';
import { getObject, listObjects, parseRevision, selectedObjects, tooLargeRevision } from './list.ts';
import { applyConfiguration } from './ownership.ts';
import { jsonPatch, mergePatch } from './patch.ts';
import { type ApiRequest, flag, parseTarget, type Target, verbOf, type WriteOptions, writeOptions } from './request.ts';
import { type ApiObject, keyOf, type Version } from './store.ts';
import { strategicPatch } from './strategic-patch.ts';
import { checkAddress, checkUid, createObject, readObject, replaceObject } from './write.ts';

export interface Reply {
  readonly code: number;
  readonly body: string;
  readonly contentType?: string;
}

/** What a request turned out to be: an answer, or a watch that the caller has to serve. */
export type Outcome = Reply | { readonly watch: Resource; readonly target: Target };

export function route(cluster: Cluster, request: ApiRequest): Outcome {
  const target = parseTarget(request.path);
  if (target === undefined || target.plural === '') return discover(cluster, request.path);
  const resource = cluster.find(target.group, target.plural);
  if (resource?.kind.version !== target.version) return unserved(cluster, target);
  if (target.subresource === 'eviction' && resource.kind.kind === 'Pod' && request.method === 'POST') {
    return { code: 201, body: JSON.stringify(evict(cluster, request, target)) };
  }
  checkSubresource(resource.kind, target, request.method);
  const verb = verbOf(request, target.name);
  negotiate(request.accept, verb);
  if (verb === 'watch') return { watch: resource, target };
  const handler = HANDLERS[verb];
  const nameless = target.name === undefined;
  if (
    !handler ||
    (verb === 'create' ? !nameless || !isPlaced(resource, target) : nameless && !ON_MANY.includes(verb))
  ) {
    throw methodNotAllowed();
  }
  return handler(cluster, resource, request, target);
}

const PRODUCED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

/** Answers are plain JSON: a client that takes no such is refused, or told that only a real server could serve it. */
function negotiate(accept: string, verb: string): void {
  const wanted = accept.split(',').map((range) => range.trim());
  if (accept === '' || wanted.some((range) => /^(\*\/\*|application\/json)(;(?!as=)|$)/.test(range))) return;
  if (wanted.some((range) => PRODUCED.includes(range.split(';')[0] ?? '')))
    throw notImplemented(`answers as ${accept}`);
  const streams = ['list', 'watch'].includes(verb) ? [0, 2].map((index) => `${PRODUCED[index]};stream=watch`) : [];
  const message = `406: Not Acceptable\n\nAvailable representations: ${[...PRODUCED, ...streams].join(', ')}`;
  throw new ApiFailure(406, 'NotAcceptable', message, {});
}

const ON_MANY = ['list', 'deletecollection'];

const isPlaced = ({ kind }: Resource, { namespace }: Target): boolean => kind.namespaced === (namespace !== undefined);

/** Resources of the core group that a real server has and this one has not. */
const CORE = `bindings componentstatuses configmaps endpoints limitranges persistentvolumeclaims persistentvolumes
  podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services`.split(/\s+/);

/** Groups of Kubernetes itself have no dot or end with its domain; what is missing of them exists in a real server. */
function unserved(cluster: Cluster, { group, version, plural }: Target): Reply {
  const siblings = cluster.resources().filter(({ kind }) => kind.group === group);
  const builtin = group === '' ? CORE.includes(plural) : !group.includes('.') || group.endsWith('.k8s.io');
  if (builtin && (group === '' || siblings.length === 0)) throw notImplemented(`${plural} of the API group "${group}"`);
  if (siblings.some(({ kind }) => kind.builtin || kind.version === version)) throw noSuchResource();
  return discover(cluster, '');
}

/** Subresources of built-in kinds that a real server has and this one has not. */
const SUBRESOURCES = [
  'attach',
  'binding',
  'ephemeralcontainers',
  'exec',
  'finalize',
  'log',
  'portforward',
  'proxy',
  'resize',
];

function checkSubresource(kind: Kind, { subresource, name = '' }: Target, method: string): void {
  if (subresource === undefined) return;
  if (kind.builtin && SUBRESOURCES.includes(subresource)) throw notImplemented(`the subresource ${subresource}`);
  if (subresource === 'eviction' && kind.kind === 'Pod') throw methodNotAllowed();
  if (subresource !== 'status' || !kind.hasStatus) throw kind.builtin ? noSuchResource() : notFound(kind, name);
  const verb = { POST: 'create', DELETE: 'delete' }[method];
  if (verb === undefined) return;
  if (kind.builtin) throw methodNotAllowed();
  const { plural, group } = kind;
  const message = `${verb} is not supported on resources of kind "${plural}.${group}"`;
  throw new ApiFailure(405, 'MethodNotAllowed', message, { group, kind: plural });
}

type Handler = (cluster: Cluster, resource: Resource, request: ApiRequest, target: Target) => Reply;

const HANDLERS: Readonly<Record<string, Handler>> = {
  get(cluster, resource, { query }, target) {
    const wanted = parseRevision(query.get('resourceVersion')) ?? 0;
    if (wanted > cluster.revisions.current) throw tooLargeRevision(wanted, cluster.revisions.current);
    return objectReply(200, getObject(resource, target));
  },

  list: (cluster, resource, { query }, target) => ({ code: 200, body: listObjects(cluster, resource, query, target) }),

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
    if (old) return objectReply(200, replaceObject(cluster, resource, old, object, target.subresource, options));
    delete object.metadata.resourceVersion;
    return objectReply(201, createObject(cluster, resource, target.namespace, object, options));
  },

  patch(cluster, resource, request, target) {
    const options = writeOptions(request, 'PatchOptions');
    if (request.contentType === APPLY) return applyObject(cluster, resource, request, target);
    const patch = decodePatch(resource.kind, request);
    const old = getObject(resource, target);
    const object = readPatched(resource.kind, patch(old.object), options);
    checkAddress(resource.kind, object, target);
    return objectReply(200, replaceObject(cluster, resource, old, object, target.subresource, options));
  },

  delete(cluster, resource, request, target) {
    const body = request.body === '' ? undefined : decodeObject(request, 'DeleteOptions');
    const options = readDeleteOptions(request.query, body);
    const old = getObject(resource, target);
    const left = deleteObject(cluster, resource, old, options);
    return left ? objectReply(200, left) : { code: 200, body: JSON.stringify(deletedStatus(resource.kind, old)) };
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

const APPLY = 'application/apply-patch+yaml';

/** Server-side apply: creates the object, or takes over the fields that the body names. */
function applyObject(cluster: Cluster, resource: Resource, request: ApiRequest, target: Target): Reply {
  const { kind, collection } = resource;
  const options = { ...writeOptions(request, 'PatchOptions'), applied: true };
  if (!request.query.get('fieldManager')) {
    throw invalidOptions('PatchOptions', [cause.required('fieldManager', 'is required for apply patch')]);
  }
  const applied = parseText(request.body, true, (why) => badRequest(`error decoding YAML: ${why}`));
  if (!isRecord(applied)) throw badRequest('error decoding YAML: the body is no object');
  const old = collection.get(keyOf(target.namespace, target.name ?? ''));
  const { subresource } = target;
  const writer = { manager: options.manager, subresource, time: cluster.timestamp() };
  const configured = readObject(kind, applied, options);
  checkAddress(kind, configured, target);
  if (subresource !== undefined && !old) throw notFound(kind, target.name ?? '');
  const merged = applyConfiguration(kind, old?.object, { applied, writer, force: flag(request.query, 'force') });
  const object = readObject(kind, merged, options);
  if (old) return objectReply(200, replaceObject(cluster, resource, old, object, subresource, options));
  return objectReply(201, createObject(cluster, resource, target.namespace, object, options));
}

/** What a patch makes of an object. */
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
  if (kind.builtin) return new ApiFailure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {});
  return unsupportedMediaType([...accepted, APPLY]);
}

/** The result of a patch is no body: what is wrong with it is the patch's fault, and called invalid. */
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

const objectReply = (code: number, version: Version): Reply => ({ code, body: version.text });
