/**
 * The OpenAPI documents. Version 3 has one document for each version of a group, and version 2 has one document for all
 * groups.
 */
import { createHash } from 'node:crypto';
import { isRecord } from '../../../src/util/json.ts';
import type { Cluster } from '../cluster.ts';
import { groupVersion, type Kind } from '../kinds/kind.ts';
import { pathsOf } from './paths.ts';
import { schemasOf } from './schemas.ts';

export const INFO = { title: 'Kubernetes', version: '1.36' };
const ROOT = '/openapi/v3';

/** Returns the document at a path; undefined if there is no document. */
export function openApiDocument(cluster: Cluster, path: string): unknown {
  const kinds = cluster.resources().map(({ kind }) => kind);
  if (path === '/openapi/v2') return versionTwo(kinds);
  const documents = Map.groupBy(kinds, documentName);
  if (path === ROOT) return { paths: Object.fromEntries([...documents].map(entryOf)) };
  const own = path.startsWith(`${ROOT}/`) ? documents.get(path.slice(ROOT.length + 1)) : undefined;
  return own && versionThree(own);
}

const documentName = (kind: Kind): string =>
  `${kind.group === '' ? 'api' : 'apis'}/${groupVersion(kind)}`;

/** Clients keep a document until its hash changes. */
function entryOf([name, kinds]: [string, Kind[]]): [string, object] {
  const text = JSON.stringify(versionThree(kinds));
  const hash = createHash('sha512').update(text).digest('hex').toUpperCase();
  return [name, { serverRelativeURL: `${ROOT}/${name}?hash=${hash}` }];
}

function versionThree(kinds: readonly Kind[]): object {
  const paths = Object.fromEntries(kinds.flatMap((kind) => Object.entries(pathsOf(kind))));
  return { openapi: '3.0.0', info: INFO, paths, components: { schemas: schemasOf(kinds) } };
}

function versionTwo(kinds: readonly Kind[]): object {
  const paths = kinds.flatMap((kind) => Object.entries(pathsOf(kind)));
  return {
    swagger: '2.0',
    info: INFO,
    paths: Object.fromEntries(paths.map(([path, item]) => [path, pathInTwo(item as PathItem)])),
    definitions: schemaInTwo(schemasOf(kinds)),
  };
}

interface Parameter {
  readonly schema: object;
}

interface Operation extends Record<string, unknown> {
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: object }>>;
  };
  readonly responses: { readonly '200': { readonly content: Readonly<Record<string, object>> } };
}

type PathItem = Readonly<Record<string, Operation | readonly Parameter[]>>;

function pathInTwo(item: PathItem): object {
  return Object.fromEntries(
    Object.entries(item).map(([verb, value]) => [
      verb,
      'responses' in value ? operationInTwo(value) : value.map(parameterInTwo),
    ]),
  );
}

function operationInTwo({ requestBody, responses, parameters, ...rest }: Operation): object {
  const content = Object.entries(requestBody?.content ?? {});
  const body = content.slice(0, 1).map(([, { schema }]) => {
    return { name: 'body', in: 'body', required: true, schema: schemaInTwo(schema) };
  });
  const [answer] = Object.values(responses['200'].content);
  return {
    ...(content.length > 0 && { consumes: content.map(([type]) => type) }),
    produces: ['application/json'],
    parameters: [...body, ...parameters.map(parameterInTwo)],
    responses: { '200': { description: 'OK', ...(schemaInTwo(answer) as object) } },
    ...rest,
  };
}

const parameterInTwo = ({ schema, ...rest }: Parameter): object => ({ ...rest, ...schema });

/**
 * Converts a schema to version 2, which has no alternatives, no null, no objects with unknown members, and no wrapped
 * references. Version 2 also has another path for schemas.
 */
function schemaInTwo(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(schemaInTwo);
  if (typeof value === 'string')
    return value.replace(/^#\/components\/schemas\//, '#/definitions/');
  if (!isRecord(value)) return value;
  const { allOf } = value;
  const wrapped = Array.isArray(allOf) && allOf.length === 1 && isRecord(allOf[0]);
  if (wrapped && isRecord(allOf[0]) && '$ref' in allOf[0]) return schemaInTwo(allOf[0]);
  const isOpen =
    value['nullable'] === true || value['x-kubernetes-preserve-unknown-fields'] === true;
  const dropped = isOpen ? [...ONLY_IN_THREE, 'type', 'items', 'properties'] : ONLY_IN_THREE;
  const kept = Object.entries(value).filter(([member]) => !dropped.includes(member));
  return Object.fromEntries(kept.map(([member, inner]) => [member, schemaInTwo(inner)]));
}

const ONLY_IN_THREE = ['oneOf', 'anyOf', 'not', 'nullable', 'default'];
