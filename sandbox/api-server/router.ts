/** Routes a request to its handler, and refuses requests that no handler serves. */
import { reviewAccess } from './access-review.ts';
import type { Cluster, Resource } from './cluster.ts';
import { discover } from './discovery.ts';
import {
  ApiFailure,
  methodNotAllowed,
  noSuchResource,
  notFound,
  notImplemented,
} from './failure.ts';
import { HANDLERS } from './handlers.ts';
import { ABSENT_KINDS } from './kinds/absent-kinds.ts';
import { groupVersion, type Kind } from './kinds/kind.ts';
import { getObject } from './list.ts';
import { POD_STREAMS, streamFailure } from './pod-streams.ts';
import { jsonReply, type Reply } from './reply.ts';
import { type ApiRequest, type Target, verbOf } from './request.ts';
import { includedObject, type TableOptions, tableReply } from './table/table.ts';

/** An answer, or a watch that the caller serves. */
export type Outcome =
  | Reply
  | {
      readonly watch: Resource;
      readonly target: Target;
      /** Present if the client wants tables. */
      readonly table: TableOptions | undefined;
    };

/** Throws an ApiFailure if the request is refused. */
export function route(cluster: Cluster, request: ApiRequest): Outcome {
  const { target } = request;
  if (target === undefined || target.plural === '')
    return discover(cluster, request.path, request.accept);
  const review = reviewAccess(request);
  if (review) return review;
  const resource = cluster.find(target.group, target.plural);
  if (resource?.kind.version !== target.version || isMisplaced(resource.kind, target))
    return unserved(cluster, request, target);
  const verb = verbOf(request, target.name);
  if (
    resource.kind.group === '' &&
    resource.kind.kind === 'Pod' &&
    POD_STREAMS.has(target.subresource ?? '')
  )
    throw streamFailure(getObject(resource, target).object);
  if (target.subresource !== undefined) checkSubresource(resource.kind, target, verb);
  const form = negotiate(request.accept, verb);
  const table =
    form === 'table'
      ? { included: includedObject(request.query), now: () => cluster.clock.now() }
      : undefined;
  if (verb === 'watch') return { watch: resource, target, table };
  const handler = target.subresource === 'eviction' ? HANDLERS['evict'] : HANDLERS[verb];
  if (!handler || !isAddressed(resource.kind, target, verb)) throw methodNotAllowed();
  const reply = handler(cluster, resource, request, target);
  return table ? tableReply(resource.kind, reply, table) : reply;
}

/**
 * Reports whether the path has a namespace although the kind has none, or names a single object without the namespace
 * that it must have.
 */
const isMisplaced = ({ namespaced }: Kind, { namespace, name }: Target): boolean =>
  namespaced ? namespace === undefined && name !== undefined : namespace !== undefined;

/** Reports whether the path names what the verb needs: one object, or the collection in which an object is created. */
function isAddressed(
  { namespaced }: Kind,
  { namespace, name, subresource }: Target,
  verb: string,
): boolean {
  if (verb === 'list' || verb === 'deletecollection' || subresource === 'eviction') return true;
  return verb === 'create'
    ? name === undefined && namespaced === (namespace !== undefined)
    : name !== undefined;
}

/** Paths of the core group that a real server serves and this server does not serve. */
const CORE =
  `bindings componentstatuses configmaps endpoints limitranges persistentvolumeclaims persistentvolumes
  podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services watch`.split(
    /\s+/,
  );

/**
 * The name of this group is in the domain of Kubernetes. Still, a server has it only if machine-controller has
 * installed its definitions.
 */
const FOREIGN = 'cluster.k8s.io';

/**
 * Answers a request for a resource that this server does not serve. If a real server serves the resource, the answer is
 * either the answer of a real server or a refusal. It is never a guess.
 */
function unserved(
  cluster: Cluster,
  request: ApiRequest,
  { group, version, plural, name }: Target,
): Reply {
  const absent = ABSENT_KINDS.find(
    (each) => each.group === group && each.version === version && each.plural === plural,
  );
  const verb = verbOf(request, name);
  if (absent && verb === 'get') throw notFound(absent, name ?? '');
  if (absent && verb === 'list') {
    const metadata = { resourceVersion: String(cluster.revisions.current) };
    return jsonReply(200, {
      kind: `${absent.kind}List`,
      apiVersion: groupVersion(absent),
      metadata,
      items: [],
    });
  }
  const siblings = cluster.resources().filter(({ kind }) => kind.group === group);
  // True for a group of Kubernetes itself: its name has no dot, or is in the domain of Kubernetes.
  const builtin =
    group === ''
      ? CORE.includes(plural)
      : !group.includes('.') || (group.endsWith('.k8s.io') && group !== FOREIGN);
  if (absent || (builtin && (group === '' || siblings.length === 0)))
    throw notImplemented(`${plural} of the API group "${group}"`);
  if (siblings.some(({ kind }) => kind.builtin)) throw noSuchResource();
  return discover(cluster, `/apis/${group}/${version}/${plural}`);
}

/** Subresources of built-in kinds that a real server has and this server does not have. */
const SUBRESOURCES = 'binding ephemeralcontainers finalize proxy resize'.split(' ');

function checkSubresource(kind: Kind, { subresource = '', name = '' }: Target, verb: string): void {
  if (kind.builtin && SUBRESOURCES.includes(subresource))
    throw notImplemented(`the subresource ${subresource}`);
  if (subresource === 'eviction' && kind.kind === 'Pod') {
    if (verb === 'create') return;
    throw methodNotAllowed();
  }
  if (subresource !== 'status' || !kind.hasStatus)
    throw kind.builtin ? noSuchResource() : notFound(kind, name);
  if (verb !== 'create' && verb !== 'delete') return;
  if (kind.builtin) throw methodNotAllowed();
  const { plural, group } = kind;
  const message = `${verb} is not supported on resources of kind "${plural}.${group}"`;
  throw new ApiFailure(405, 'MethodNotAllowed', message, { group, kind: plural });
}

const PRODUCED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];

const TABLE =
  /^application\/json;(?=.*\bas=Table(;|$))(?=.*\bg=meta\.k8s\.io(;|$))(?=.*\bv=v1(;|$))/;
const PLAIN = /^(\*\/\*|application\/json)(;(?!as=)|$)/;

/**
 * Returns the form of the answer, which is always JSON: the first form that the client accepts. Refuses a client that
 * accepts none of the forms.
 */
function negotiate(accept: string, verb: string): 'plain' | 'table' {
  const wanted = accept.split(',').map((range) => range.trim());
  const first = wanted.find((range) => TABLE.test(range) || PLAIN.test(range));
  if (accept === '') return 'plain';
  if (first !== undefined) return TABLE.test(first) ? 'table' : 'plain';
  if (wanted.some((range) => PRODUCED.includes(range.split(';')[0] ?? '')))
    throw notImplemented(`answers as ${accept}`);
  const streams = ['list', 'watch'].includes(verb)
    ? [0, 2].map((index) => `${PRODUCED[index]};stream=watch`)
    : [];
  const message = `406: Not Acceptable\n\nAvailable representations: ${[...PRODUCED, ...streams].join(', ')}`;
  throw new ApiFailure(406, 'NotAcceptable', message, {});
}
