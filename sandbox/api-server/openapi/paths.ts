/** The paths of a kind in OpenAPI documents: the verbs, their options and the types of their bodies. */
import type { Kind } from '../kinds/kind.ts';
import { metaRef, refTo, schemaName } from './schemas.ts';

/** The options of a verb, each with its type. */
type Options = Readonly<Record<string, string>>;

const WRITE: Options = { dryRun: 'string', fieldManager: 'string', fieldValidation: 'string' };
const DELETE: Options = {
  dryRun: 'string',
  gracePeriodSeconds: 'integer',
  orphanDependents: 'boolean',
  propagationPolicy: 'string',
};
const LIST: Options = {
  allowWatchBookmarks: 'boolean',
  continue: 'string',
  fieldSelector: 'string',
  labelSelector: 'string',
  limit: 'integer',
  resourceVersion: 'string',
  resourceVersionMatch: 'string',
  sendInitialEvents: 'boolean',
  timeoutSeconds: 'integer',
  watch: 'boolean',
};

const PATCHES = ['apply-patch+yaml', 'json-patch+json', 'merge-patch+json'];
const STRATEGIC = 'strategic-merge-patch+json';

type Schema = Readonly<Record<string, unknown>>;

interface Operation {
  readonly action: string;
  readonly options?: Options;
  readonly body?: Schema;
  readonly bodyTypes?: readonly string[];
  readonly answer: Schema;
}

/** Returns the path items of OpenAPI v3, by path. */
export function pathsOf(kind: Kind): Record<string, unknown> {
  const { group, version, plural, namespaced } = kind;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const item = `${collection}/{name}`;
  const operation = operationOf(kind);
  const object = refTo(schemaName(kind));
  const list = refTo(schemaName(kind, kind.listKind));
  const listing = operation({ action: 'list', options: LIST, answer: list });
  const { get, put, patch } = changes(kind, operation);
  // The collection of namespaces does not have this verb: namespaces are deleted one by one.
  const deleting = operation({
    action: 'deletecollection',
    options: LIST,
    answer: metaRef('Status'),
  });
  const within = namespaced ? ['namespace'] : [];
  const status = kind.hasStatus
    ? { [`${item}/status`]: { get, put, patch, ...parameters(['name', ...within]) } }
    : {};
  const everywhere = namespaced
    ? { [`${root}/${plural}`]: { get: listing, ...parameters([]) } }
    : {};
  return {
    [collection]: {
      get: listing,
      post: operation({ action: 'post', options: WRITE, body: object, answer: object }),
      ...(group === '' && plural === 'namespaces' ? {} : { delete: deleting }),
      ...parameters(within),
    },
    [item]: {
      get,
      put,
      delete: operation({
        action: 'delete',
        options: DELETE,
        body: metaRef('DeleteOptions'),
        answer: metaRef('Status'),
      }),
      patch,
      ...parameters(['name', ...within]),
    },
    ...status,
    ...everywhere,
  };
}

/** Returns the operations on one object. Its status has the same operations. */
function changes(
  kind: Kind,
  operation: (wanted: Operation) => object,
): { get: object; put: object; patch: object } {
  const object = refTo(schemaName(kind));
  const types = kind.builtin ? [...PATCHES, STRATEGIC] : PATCHES;
  return {
    get: operation({ action: 'get', answer: object }),
    put: operation({ action: 'put', options: WRITE, body: object, answer: object }),
    patch: operation({
      action: 'patch',
      options: { ...WRITE, force: 'boolean' },
      body: metaRef('Patch'),
      bodyTypes: types.map((type) => `application/${type}`),
      answer: object,
    }),
  };
}

const operationOf =
  ({ group, version, kind }: Kind) =>
  ({ action, options = {}, body, bodyTypes = ['application/json'], answer }: Operation): object => {
    const requestBody = body && {
      content: Object.fromEntries(bodyTypes.map((type) => [type, { schema: body }])),
      required: true,
    };
    return {
      parameters: Object.entries(options).map(([name, type]) => {
        return { name, in: 'query', schema: { type, uniqueItems: true } };
      }),
      ...(requestBody && { requestBody }),
      responses: {
        '200': { description: 'OK', content: { 'application/json': { schema: answer } } },
      },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group, version, kind },
    };
  };

function parameters(names: readonly string[]): { parameters: object[] } {
  const schema = { type: 'string', uniqueItems: true };
  return { parameters: names.map((name) => ({ name, in: 'path', required: true, schema })) };
}
