/** Makes the tables that `kubectl get` requests from the server. */
import { isRecord } from '../../../src/util/json.ts';
import { badRequest } from '../failure.ts';
import { groupVersion, type Kind } from '../kinds/kind.ts';
import { jsonReply, type Reply } from '../reply.ts';
import type { ApiObject } from '../store.ts';
import { builtinColumns } from './builtin-columns.ts';
import { podRowConditions } from './pod-columns.ts';

const INCLUDED = ['', 'None', 'Metadata', 'Object'];

/** The part of an object that a row contains in addition to its cells. */
export type Included = 'None' | 'Metadata' | 'Object';

/** Throws 400 for a value that the server does not know. */
export function includedObject(query: URLSearchParams): Included {
  const value = query.get('includeObject') ?? '';
  if (!INCLUDED.includes(value))
    throw badRequest(
      `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
    );
  return value === '' ? 'Metadata' : (value as Included);
}

export interface TableOptions {
  readonly included: Included;
  /** Returns the current time in milliseconds since 1970, for ages. */
  readonly now: () => number;
}

/** Returns the answer as a table if it is an object or a list of the kind; otherwise returns it unchanged. */
export function tableReply(kind: Kind, reply: Reply, options: TableOptions): Reply {
  const content = JSON.parse(reply.body) as Record<string, unknown>;
  if (content['kind'] !== kind.kind && content['kind'] !== kind.listKind) return reply;
  return jsonReply(reply.code, tableOf(kind, content, options));
}

/** `content` is one object, a list, or the bookmark of a watch, as the server would send it without a table. */
export function tableOf(
  kind: Kind,
  content: Record<string, unknown>,
  { included, now }: TableOptions,
): Record<string, unknown> {
  const columns = kind.builtin ? builtinColumns(kind) : kind.columns;
  const { items } = content;
  const objects = (Array.isArray(items) ? items : [content]) as ApiObject[];
  const { metadata } = content;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: isRecord(metadata) ? listMetadata(metadata) : {},
    columnDefinitions: columns.map(({ name, type, format, priority }) => {
      return { name, type, format, description: '', priority };
    }),
    rows: objects.map((object) => {
      const cells = columns.map(({ cell }) => cell(object, now()));
      const conditions = kind.builtin && kind.kind === 'Pod' ? podRowConditions(object) : {};
      return { cells, ...conditions, object: embedded(kind, object, included) };
    }),
  };
}

/** Returns the metadata of the table. For a single object, this is only the resourceVersion. */
function listMetadata(metadata: Record<string, unknown>): Record<string, unknown> {
  const { resourceVersion, continue: token, remainingItemCount } = metadata;
  const remaining = remainingItemCount === undefined ? {} : { remainingItemCount };
  return { resourceVersion, ...(token ? { continue: token } : {}), ...remaining };
}

function embedded(kind: Kind, object: ApiObject, included: Included): unknown {
  if (included === 'None') return null;
  if (included === 'Object') return { ...object, kind: kind.kind, apiVersion: groupVersion(kind) };
  const { metadata } = object;
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}
