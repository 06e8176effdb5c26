/** Answers requests about the server itself: versions, groups, resources and health. */
import type { Cluster } from './cluster.ts';
import { ABSENT_KINDS, describeAbsent } from './kinds/absent-kinds.ts';
import { groupVersion, type Kind } from './kinds/kind.ts';
import { INFO, openApiDocument } from './openapi/documents.ts';
import { emptyDocument, PROTOBUF_CONTENT_TYPE, prefersProtobuf } from './openapi/protobuf.ts';
import { jsonReply, type Reply } from './reply.ts';

/** The release whose behaviour this server reproduces. */
const VERSION = { major: '1', minor: '36', gitVersion: 'v1.36.3' };

/** The verbs of built-in kinds. Custom kinds have another order, and clients may show the order. */
const BUILTIN_VERBS = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];
const CUSTOM_VERBS = [
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'create',
  'update',
  'watch',
];

/** The subresource for evictions. kubectl deletes the pods of a drained node if it does not find this subresource. */
const EVICTION = {
  name: 'pods/eviction',
  singularName: '',
  namespaced: true,
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  verbs: ['create'],
};

const json = (value: unknown): Reply => jsonReply(200, value);
const plain = (code: number, body: string): Reply => ({
  code,
  body,
  contentType: 'text/plain; charset=utf-8',
});

/** Answers 404 as plain text for unknown paths, as a real server does. */
export function discover(cluster: Cluster, path: string, accept = ''): Reply {
  const kinds = cluster.resources().map(({ kind }) => kind);
  const groups = [...new Set([...kinds, ...ABSENT_KINDS].map(({ group }) => group))]
    .filter((group) => group !== '')
    .toSorted();
  if (['/readyz', '/livez', '/healthz'].includes(path)) return plain(200, 'ok');
  if (path === '/version') return json(VERSION);
  if (path === '/openapi/v2' && prefersProtobuf(accept))
    return { code: 200, body: emptyDocument(INFO), contentType: PROTOBUF_CONTENT_TYPE };
  const document = openApiDocument(cluster, path);
  if (document !== undefined) return json(document);
  if (path === '/api')
    return json({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] });
  if (path === '/apis') {
    return json({
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups.map((group) => describeGroup(group, kinds)),
    });
  }
  const [root = '', group = '', version = '', plural] = path.slice(1).replace(/\/$/, '').split('/');
  // The server has no discovery document for a resource that it does not serve.
  if (plural !== undefined) return plain(404, '404 page not found\n');
  if (root === 'api' && group === 'v1' && version === '')
    return json(describeVersion(kinds, '', 'v1'));
  if (root === 'apis' && groups.includes(group)) {
    if (version === '')
      return json({ kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group, kinds) });
    if (
      [...kinds, ...ABSENT_KINDS].some((kind) => kind.group === group && kind.version === version)
    ) {
      return json(describeVersion(kinds, group, version));
    }
  }
  return plain(404, '404 page not found\n');
}

function describeGroup(name: string, kinds: readonly Kind[]): Record<string, unknown> {
  const own = [...kinds, ...ABSENT_KINDS]
    .filter(({ group }) => group === name)
    .map(({ version }) => version);
  const versions = [...new Set(own)].map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

function describeVersion(
  kinds: readonly Kind[],
  group: string,
  version: string,
): Record<string, unknown> {
  const own = kinds.filter((kind) => kind.group === group && kind.version === version);
  const resources = own.flatMap((kind) => [
    describeKind(kind, kind.plural, kind.builtin ? BUILTIN_VERBS : CUSTOM_VERBS),
    ...(kind.builtin && kind.kind === 'Pod' ? [EVICTION] : []),
    ...(kind.hasStatus
      ? [describeKind(kind, `${kind.plural}/status`, ['get', 'patch', 'update'])]
      : []),
  ]);
  const absent = ABSENT_KINDS.filter((kind) => kind.group === group && kind.version === version);
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: groupVersion({ group, version }),
    resources: [...resources, ...absent.map(describeAbsent)],
  };
}

function describeKind(kind: Kind, name: string, verbs: readonly string[]): Record<string, unknown> {
  const main = name === kind.plural;
  return {
    name,
    singularName: main ? kind.singular : '',
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs,
    ...(main && kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(main && kind.categories.length > 0 ? { categories: kind.categories } : {}),
  };
}
