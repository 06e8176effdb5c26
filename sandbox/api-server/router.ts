/** The way from a request to its handler, and the refusal of what no handler serves. */
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
import type { Kind } from './kinds/kind.ts';
import { jsonReply, type Reply } from './reply.ts';
import { type ApiRequest, type Target, verbOf } from './request.ts';
import { includedObject, type TableOptions, tableReply } from './table/table.ts';

/** An answer, or a watch that the caller serves. */
export type Outcome =
  | Reply
  | {
      readonly watch: Resource;
      readonly target: Target;
      /** Present where the client wants tables. */
      readonly table: TableOptions | undefined;
    };

/** Throws the Status of a refusal. */
export function route(cluster: Cluster, request: ApiRequest): Outcome {
  const { target } = request;
  if (target === undefined || target.plural === '')
    return discover(cluster, request.path, request.accept);
  const resource = cluster.find(target.group, target.plural);
  if (resource?.kind.version !== target.version || isMisplaced(resource.kind, target))
    return unserved(cluster, request, target);
  const verb = verbOf(request, target.name);
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

/** In a namespace although the kind knows none, or a single object without the namespace that it must have. */
const isMisplaced = ({ namespaced }: Kind, { namespace, name }: Target): boolean =>
  namespaced ? namespace === undefined && name !== undefined : namespace !== undefined;

/** Whether the path names what the verb needs: one object, or the collection that it is created in. */
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

/** Paths of the core group that a real server serves and this one does not. */
const CORE =
  `bindings componentstatuses configmaps endpoints limitranges persistentvolumeclaims persistentvolumes
  podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services watch`.split(
    /\s+/,
  );

/** Nothing here makes any of these, so a real server would say the same to who looks for them. Others cannot be written. */
const NEVER_THERE = new Map([
  ['apps/v1/daemonsets', 'DaemonSet'],
  ['apps/v1/deployments', 'Deployment'],
  ['admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'],
  [
    'admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    'ValidatingWebhookConfiguration',
  ],
  ['discovery.k8s.io/v1/endpointslices', 'EndpointSlice'],
]);

/** In the domain of Kubernetes, and served only where machine-controller has brought its definitions. */
const FOREIGN = 'cluster.k8s.io';

/** The answer for what is not served here: for what a real server serves, never one that only seems true. */
function unserved(
  cluster: Cluster,
  request: ApiRequest,
  { group, version, plural, name }: Target,
): Reply {
  const kind = NEVER_THERE.get(`${group}/${version}/${plural}`);
  const verb = verbOf(request, name);
  if (kind !== undefined && verb === 'get') throw notFound({ group, plural, kind }, name ?? '');
  if (kind !== undefined && verb === 'list') {
    const metadata = { resourceVersion: String(cluster.revisions.current) };
    return jsonReply(200, {
      kind: `${kind}List`,
      apiVersion: `${group}/${version}`,
      metadata,
      items: [],
    });
  }
  const siblings = cluster.resources().filter(({ kind }) => kind.group === group);
  // Of Kubernetes itself: without a dot, or in its domain.
  const builtin =
    group === ''
      ? CORE.includes(plural)
      : !group.includes('.') || (group.endsWith('.k8s.io') && group !== FOREIGN);
  if (builtin && (group === '' || siblings.length === 0))
    throw notImplemented(`${plural} of the API group "${group}"`);
  if (siblings.some(({ kind }) => kind.builtin)) throw noSuchResource();
  return discover(cluster, `/apis/${group}/${version}/${plural}`);
}

/** Subresources of built-in kinds that a real server has and this one has not. */
const SUBRESOURCES =
  'attach binding ephemeralcontainers exec finalize log portforward proxy resize'.split(' ');

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

/** The form of the answer, as JSON: the first one that the client accepts. Refuses clients that accept none. */
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
