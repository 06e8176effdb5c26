/**
 * Defines the contract of the Kubernetes client, and the contract of the caller that sends single calls for the client.
 */
import type { KubeList, KubeObject, Resource, Status } from './resources.ts';

export interface RequestOptions {
  readonly namespace?: string | undefined;
  readonly abort?: AbortSignal | undefined;
  /** The most milliseconds that the whole request may take. If it is absent, the default of the client applies. */
  readonly deadlineMs?: number | undefined;
}

/**
 * Selects the objects of a list or watch: all namespaces if `namespace` is absent, and all objects
 * if no selector is set.
 */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends RequestOptions, Selection {
  readonly limit?: number | undefined;
  /**
   * With `0` the API server answers at once from its cache, which may be out of date. By default
   * the list is up to date.
   */
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
  /** The most bytes of one answer. It counts only if it is lower than the limit of the client. */
  readonly mostBytes?: number | undefined;
}

export interface ListAllOptions<T extends KubeObject> extends ListOptions {
  /**
   * Changes each object before the next page is read, because thousands of complete objects may not
   * fit into memory.
   */
  readonly transform?: (object: T) => T;
}

export interface WatchOptions extends RequestOptions, Selection {
  readonly resourceVersion?: string | undefined;
  /** If true, the server first streams the current state and ends it with an annotated bookmark. */
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

export interface CreateOptions extends WriteOptions {
  /** If true, the server checks the write and answers as usual, but stores nothing. */
  readonly dryRun?: boolean | undefined;
}

export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

export interface PatchOptions extends WriteOptions {
  readonly type: PatchType;
  /**
   * If true, the server transfers the ownership of the fields from other field managers. It is allowed only with the
   * type `apply`.
   */
  readonly force?: boolean | undefined;
  /** If true, the server checks the write and answers as usual, but stores nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface DeleteOptions extends EvictOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Background' | undefined;
}

export interface EvictOptions extends RequestOptions {
  /** Seconds that the pod gets to terminate. The default is the period in the spec of the pod. */
  readonly gracePeriodSeconds?: number | undefined;
}

/**
 * Sends requests to the API server. Every method rejects with a StatusError if the server refuses,
 * and with a TransportError if no answer comes.
 */
export interface KubeClient {
  get<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    options?: RequestOptions,
  ): Promise<T>;
  /** Returns one page. To get the rest, follow `metadata.continue`, or use `listAll`. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** Returns the objects of all pages, all at the same resourceVersion. */
  listAll<T extends KubeObject>(
    resource: Resource<T>,
    options?: ListAllOptions<T>,
  ): Promise<KubeList<T>>;
  /**
   * Yields events until the server closes the stream. It throws a TransportError if the stream
   * breaks or sends nothing for minutes.
   */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    options?: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options?: CreateOptions,
  ): Promise<T>;
  /**
   * Sends a PUT. If the object has a `metadata.resourceVersion`, and the stored object has changed since that version,
   * rejects with a conflict.
   */
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
  /**
   * Returns the status code and the text of a path such as `/readyz`. It does not reject because of
   * an error code.
   */
  raw(path: string, options?: RequestOptions): Promise<{ status: number; body: string }>;
  /** Closes idle connections and aborts all requests. Later requests fail without being sent. */
  close(): void;
}

/** A client that the caller may use until `abort` fires. */
export interface Reading {
  readonly client: KubeClient;
  readonly abort: AbortSignal;
}

/** One request to the API server. */
export interface Call {
  /** The verb in the words of RBAC: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /**
   * The plural name, with the subresource if there is one, such as `nodes/status`. Metrics use it
   * as a label.
   */
  readonly resource: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly abort?: AbortSignal | undefined;
  readonly deadlineMs: number;
  /**
   * The most bytes of the response. It applies only if it is lower than the limit of the caller. It does not apply to
   * streams.
   */
  readonly mostBytes?: number | undefined;
  /**
   * Returns a description of the fault in a parsed response, or in one value of a stream; undefined if there is no
   * fault.
   */
  readonly check?: (answer: unknown) => string | undefined;
}

/** Sends single calls. The client is built on it. */
export interface Caller {
  /**
   * Returns the answer with any status code. It rejects with a TransportError if no answer comes
   * within the deadline.
   */
  text(call: Call): Promise<{ status: number; body: string }>;
  /** Returns the parsed answer. It rejects with a StatusError if the server refuses. */
  json<T>(call: Call): Promise<T>;
  /** Yields the values of a stream. It throws a TransportError if nothing arrives for `idleMs`. */
  stream<T>(call: Call, idleMs: number): AsyncIterable<T>;
  close(): void;
}

/** Returns the query with its question mark, or an empty text if no parameter has a value. */
export function queryText(query: NonNullable<Call['query']>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
