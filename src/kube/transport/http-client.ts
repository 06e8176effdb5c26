/** The KubeClient over HTTP: each method is one call, and objects stay plain JSON. */
import { systemClock } from '../../util/clock.ts';
import { isRecord } from '../../util/json.ts';
import type {
  Call,
  Caller,
  KubeClient,
  ListOptions,
  PatchType,
  RequestOptions,
  WriteOptions,
} from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { credentialsOf } from '../config/credentials.ts';
import type { Address, KubeList, KubeObject, Resource } from '../resources.ts';
import * as kube from '../resources.ts';
import { TransportError } from '../status-error.ts';
import { type RequesterOptions, requesterTo } from './requester.ts';

export interface ClientOptions extends RequesterOptions {
  /** Our name in `metadata.managedFields`, unless a call names another. */
  readonly fieldManager?: string;
  /** Milliseconds for a whole request; 30 s by default, longer than any healthy answer takes. */
  readonly deadlineMs?: number;
  /** Milliseconds without data on a watch; 3 min by default: servers send a bookmark about once a minute. */
  readonly watchIdleMs?: number;
  /** Objects of the longest list over all its pages; a million by default. */
  readonly mostItems?: number;
}

const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  // JSON is YAML too, and every supported server takes this type.
  apply: 'application/apply-patch+yaml',
};

/** Objects per page, as in client-go: small enough not to block the event loop. */
const PAGE_SIZE = 500;
/** A server may find nothing that matches in a page. */
const MOST_EMPTY_PAGES = 1_000;
const MOST_READYZ_BYTES = 1024 * 1024;

const same = <T>(object: T): T => object;

export function createClient(
  config: ClusterConfig,
  options: ClientOptions = {},
): KubeClient & Disposable {
  return clientOver(requesterTo(config, options), options);
}

export function clientOver(caller: Caller, options: ClientOptions = {}): KubeClient & Disposable {
  const close = (): void => caller.close();
  return {
    ...readsOver(caller, options),
    ...writesOver(caller, options),
    close,
    [Symbol.dispose]: close,
  };
}

/** Makes calls that read, which only `method` and content turn into others. */
function callsOf({ deadlineMs: usual = 30_000 }: ClientOptions) {
  const callAt = (verb: string, resource: string, path: string, options: RequestOptions): Call => {
    const { abort, deadlineMs = usual } = options;
    return { verb, resource, method: 'GET', path, abort, deadlineMs };
  };
  const callFor = (
    verb: string,
    resource: Resource,
    options: RequestOptions,
    place: Address = {},
  ): Call =>
    callAt(
      verb,
      resource.plural,
      kube.pathOf(resource, { namespace: options.namespace, ...place }),
      options,
    );
  return { callAt, callFor };
}

function readsOver(
  caller: Caller,
  own: ClientOptions,
): Pick<KubeClient, 'get' | 'list' | 'listAll' | 'watch' | 'raw'> {
  const { mostItems = 1_000_000, watchIdleMs = 180_000 } = own;
  const { callAt, callFor } = callsOf(own);
  const list = async <T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<KubeList<T>> => {
    const { labelSelector, fieldSelector, limit, resourceVersion } = options;
    const query = {
      labelSelector,
      fieldSelector,
      limit,
      resourceVersion,
      continue: options.continue,
    };
    const call = { ...callFor('list', resource, options), query, check: listCheck(resource.kind) };
    const found = await caller.json<KubeList<T>>(call);
    // Servers omit both in the items of built-in lists, but not in watch events. This gives both one form.
    const form = { apiVersion: kube.apiVersionOf(resource), kind: resource.kind };
    const items = (found.items ?? []).map((item) =>
      item.kind === undefined ? { ...form, ...item } : item,
    );
    return { ...found, items };
  };
  return {
    list,
    async listAll(resource, { transform = same, ...options } = {}) {
      let page = await list(resource, { limit: PAGE_SIZE, ...options });
      const items = page.items.map(transform);
      for (let pages = 1; page.metadata.continue; pages++) {
        // Many more pages than objects: nobody pages like that but to keep us busy.
        if (items.length > mostItems || pages > items.length + MOST_EMPTY_PAGES)
          throw new TransportError(
            `the list of ${resource.plural} does not end: ${items.length} in ${pages} pages`,
          );
        const rest = { ...options, continue: page.metadata.continue, resourceVersion: undefined };
        page = await list(resource, { limit: PAGE_SIZE, ...rest });
        items.push(...page.items.map(transform));
      }
      return { ...page, items };
    },
    get: async (resource, name, options = {}) =>
      await caller.json({
        ...callFor('get', resource, options, { name }),
        check: objectCheck(resource.kind),
      }),
    watch(resource, options = {}) {
      const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds, sendInitialEvents } =
        options;
      const initial = sendInitialEvents
        ? { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' }
        : {};
      const selected = {
        labelSelector,
        fieldSelector,
        resourceVersion,
        timeoutSeconds,
        ...initial,
      };
      const query = { ...selected, watch: true, allowWatchBookmarks: true };
      const call = {
        ...callFor('watch', resource, options),
        query,
        check: eventCheck(resource.kind),
      };
      return caller.stream(call, watchIdleMs);
    },
    raw: async (path, options = {}) =>
      await caller.text(callAt('get', path.split('?')[0] ?? path, path, options)),
  };
}

const METHODS = { create: 'POST', update: 'PUT', patch: 'PATCH' } as const;

function writesOver(
  caller: Caller,
  own: ClientOptions,
): Pick<KubeClient, 'create' | 'replace' | 'patch' | 'delete' | 'evict'> {
  const { callAt, callFor } = callsOf(own);
  /** The namespace of `options` comes before that of `place`. */
  const writeCall = (
    verb: keyof typeof METHODS,
    resource: Resource,
    place: Address,
    options: WriteOptions,
    content: Pick<Call, 'body' | 'contentType' | 'query'>,
  ) => {
    const {
      subresource,
      namespace = place.namespace,
      fieldManager = own.fieldManager ?? 'refit',
    } = options;
    const path = kube.pathOf(resource, { namespace, name: place.name, subresource });
    const label = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
    // A subresource may answer with a kind of its own.
    const check = objectCheck(subresource === undefined ? resource.kind : undefined);
    const query = { fieldManager, ...content.query };
    return {
      ...callAt(verb, label, path, options),
      method: METHODS[verb],
      check,
      ...content,
      query,
    };
  };
  return {
    async create(resource, object, options = {}) {
      const { namespace, name } = object.metadata;
      const place = options.subresource === undefined ? { namespace } : { namespace, name };
      return await caller.json(writeCall('create', resource, place, options, { body: object }));
    },
    replace: async (resource, object, options = {}) =>
      await caller.json(writeCall('update', resource, object.metadata, options, { body: object })),
    async patch(resource, name, patch, options) {
      const force = options.type === 'apply' ? options.force : undefined;
      const dryRun = options.dryRun ? 'All' : undefined;
      const content = {
        body: patch,
        contentType: CONTENT_TYPES[options.type],
        query: { force, dryRun },
      };
      return await caller.json(writeCall('patch', resource, { name }, options, content));
    },
    async delete(resource, name, options = {}) {
      const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
      const preconditions =
        uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
      const body = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy,
        gracePeriodSeconds,
        preconditions,
      };
      await caller.json({
        ...callFor('delete', resource, options, { name }),
        method: 'DELETE',
        body,
      });
    },
    async evict({ name, namespace, uid }, options = {}) {
      const { gracePeriodSeconds } = options;
      const path = kube.pathOf(kube.pods, { namespace, name, subresource: 'eviction' });
      const deleteOptions = {
        gracePeriodSeconds,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      };
      const body = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
        deleteOptions,
      };
      await caller.json({
        ...callAt('create', 'pods/eviction', path, options),
        method: 'POST',
        body,
      });
    },
  };
}

/** Complains about an answer that is no object of the kind; without `kind` any kind is good. */
function objectCheck(kind: string | undefined): (answer: unknown) => string | undefined {
  return (answer) => {
    if (!isRecord(answer))
      return `it answered with ${JSON.stringify(answer).slice(0, 60)}, not with an object`;
    const found = answer['kind'];
    if (kind !== undefined && found !== undefined && found !== kind)
      return `it answered with kind ${JSON.stringify(found)}, not with a ${kind}`;
    return isRecord(answer['metadata']) ? undefined : 'it answered with an object without metadata';
  };
}

function listCheck(kind: string): (answer: unknown) => string | undefined {
  const checkList = objectCheck(`${kind}List`);
  const checkItem = objectCheck(kind);
  return (answer) => {
    const problem = checkList(answer);
    if (problem !== undefined || !isRecord(answer)) return problem;
    const items = answer['items'] ?? [];
    if (!Array.isArray(items)) return 'it answered with a list whose items are no array';
    return items.map(checkItem).find((found) => found !== undefined);
  };
}

function eventCheck(kind: string): (event: unknown) => string | undefined {
  const checkObject = objectCheck(kind);
  return (event) => {
    if (!isRecord(event) || typeof event['type'] !== 'string' || !isRecord(event['object']))
      return `it sent ${JSON.stringify(event).slice(0, 60)}, not an event of a watch`;
    return event['type'] === 'ERROR' ? undefined : checkObject(event['object']);
  };
}

export interface ReadyzOptions extends Pick<RequestOptions, 'abort'> {
  /** Milliseconds. */
  readonly deadlineMs: number;
  /** The port on every host; the port of the connection's own server by default. */
  readonly port?: number | undefined;
}

/** Asks the API server at an address for its HTTP status. One that stays silent for the deadline is not ready. */
export function askerOf(config: ClusterConfig) {
  const { origin, protocol } = new URL(config.server);
  const isProven = protocol === 'https:' && config.insecureSkipTlsVerify !== true;
  const known = credentialsOf(config, systemClock);
  const unknown = credentialsOf({ ...config, user: {} }, systemClock);
  return async (host: string, { port, ...options }: ReadyzOptions): Promise<number> => {
    const server = originOf(config, host, port);
    // Addresses come from Nodes: one that no certificate proves gets no credentials.
    const credentials = isProven || server === origin ? known : unknown;
    // A new connection: an old one does not prove that the server accepts clients.
    using client = createClient(
      { ...config, server },
      { credentials, mostBytes: MOST_READYZ_BYTES },
    );
    return (await client.raw('/readyz', options)).status;
  };
}

/** Parses the whole URL: the setters of URL ignore bad values, and then the connection's own server would answer. */
function originOf({ server }: ClusterConfig, host: string, port?: number): string {
  const own = new URL(server);
  const url = `${own.protocol}//${host.includes(':') ? `[${host}]` : host}:${port ?? own.port}`;
  if (/^[\w.:-]+$/.test(host) && URL.canParse(url)) return new URL(url).origin;
  throw new Error(`"${host}" is not the address of an API server`);
}
