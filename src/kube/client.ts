/** The contract of the Kubernetes client, and of the caller below it that makes single calls. */
import type { KubeList, KubeObject, Resource, Status } from './resources.ts';

export interface RequestOptions {
  readonly namespace?: string | undefined;
  readonly abort?: AbortSignal | undefined;
  /** Milliseconds for the whole request; the client's default otherwise. */
  readonly deadlineMs?: number | undefined;
}

/** In all namespaces if it names none. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends RequestOptions, Selection {
  readonly limit?: number | undefined;
  /** `0`: what the API server has in its cache, at once. By default it makes sure that nothing is newer. */
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
}

export interface ListAllOptions<T extends KubeObject> extends ListOptions {
  /** Changes each object before the next page is read: thousands of complete ones may not fit into memory. */
  readonly transform?: (object: T) => T;
}

export interface WatchOptions extends RequestOptions, Selection {
  readonly resourceVersion?: string | undefined;
  /** The server first streams the current state, and ends it with an annotated bookmark. */
  readonly sendInitialEvents?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

export interface WriteOptions extends RequestOptions {
  readonly subresource?: string | undefined;
  readonly fieldManager?: string | undefined;
}

export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

export interface PatchOptions extends WriteOptions {
  readonly type: PatchType;
  /** With `apply` only: takes fields over from other managers. */
  readonly force?: boolean | undefined;
  /** The server answers as if it wrote, and writes nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface DeleteOptions extends EvictOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Background' | undefined;
}

export interface EvictOptions extends RequestOptions {
  /** Seconds for the pod to terminate; the pod's own period otherwise. */
  readonly gracePeriodSeconds?: number | undefined;
}

/** Every method rejects with a StatusError when the server refuses, and with a TransportError when no answer comes. */
export interface KubeClient {
  get<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    options?: RequestOptions,
  ): Promise<T>;
  /** One page; follow `metadata.continue`, or use `listAll`. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** All pages of one consistent list. */
  listAll<T extends KubeObject>(
    resource: Resource<T>,
    options?: ListAllOptions<T>,
  ): Promise<KubeList<T>>;
  /** Ends when the server closes the stream; throws a TransportError when it breaks or sends nothing for minutes. */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    options?: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
  /** PUT: with `metadata.resourceVersion` it fails with a conflict when the object has changed. */
  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    patch: unknown,
    options: PatchOptions,
  ): Promise<T>;
  delete(resource: Resource, name: string, options?: DeleteOptions): Promise<void>;
  evict(
    pod: { name: string; namespace: string; uid?: string },
    options?: EvictOptions,
  ): Promise<void>;
  /** Status code and text of a path such as `/readyz`, whatever the code is. */
  raw(path: string, options?: RequestOptions): Promise<{ status: number; body: string }>;
  /** Closes idle connections and aborts all requests; later requests fail without being sent. */
  close(): void;
}

/** A connection that is used until `abort`. */
export interface Reading {
  readonly client: KubeClient;
  readonly abort: AbortSignal;
}

export interface Call {
  /** As RBAC names it: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /** Plural with subresource, `nodes/status`: also the label of metrics. */
  readonly resource: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly abort?: AbortSignal | undefined;
  readonly deadlineMs: number;
  /** What is wrong with a parsed answer, or with a value of a stream; undefined for a good one. */
  readonly check?: (answer: unknown) => string | undefined;
}

export interface Caller {
  /** The answer, whatever its code; rejects with a TransportError when none comes within the deadline. */
  text(call: Call): Promise<{ status: number; body: string }>;
  /** The parsed answer; rejects with a StatusError when the server refuses. */
  json<T>(call: Call): Promise<T>;
  /** The values of a stream, which breaks when nothing comes for `idleMs`. */
  stream<T>(call: Call, idleMs: number): AsyncIterable<T>;
  close(): void;
}

/** With its question mark; empty without parameters. */
export function queryText(query: NonNullable<Call['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
