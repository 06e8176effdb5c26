/** Owns the contract of the Kubernetes client: what the layers above may ask of an API server. */
import type { Resource } from './resources.ts';
import type { KubeList, KubeObject, Status } from './types.ts';

export interface RequestOptions {
  readonly namespace?: string | undefined;
  readonly abort?: AbortSignal | undefined;
  /** Milliseconds until the whole request is given up; the client's own default where absent. */
  readonly deadlineMs?: number | undefined;
}

export interface ListOptions extends RequestOptions {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
}

export interface WatchOptions extends RequestOptions {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly resourceVersion?: string | undefined;
  /** Asks the server to stream the current state first, ended by an annotated bookmark. */
  readonly sendInitialEvents?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** Milliseconds of silence after which the stream is given up (`deadlineMs` ends with the head of the answer). */
  readonly idleMs?: number | undefined;
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

export interface WriteOptions extends RequestOptions {
  readonly subresource?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly fieldManager?: string | undefined;
}

export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

export interface PatchOptions extends WriteOptions {
  readonly type: PatchType;
  /** With `apply` only: take fields over from other managers. */
  readonly force?: boolean | undefined;
}

export interface DeleteOptions extends RequestOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined;
}

export interface EvictOptions extends RequestOptions {
  /** Seconds between the pod's being told to end and its end; its own where absent. */
  readonly gracePeriodSeconds?: number | undefined;
}

/** Every method rejects with a StatusError where the server refused, and with a TransportError where no answer came. */
export interface KubeClient {
  get<T extends KubeObject>(resource: Resource<T>, name: string, options?: RequestOptions): Promise<T>;
  /** One page: follow `metadata.continue`, or use `listAll`. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** All pages of one consistent list. */
  listAll<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** Ends when the server closes the stream; throws TransportError where the stream breaks or stays silent too long. */
  watch<T extends KubeObject>(resource: Resource<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  /** PUT: with `metadata.resourceVersion` set it fails with a conflict where the object has changed. */
  replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(resource: Resource<T>, name: string, patch: unknown, options: PatchOptions): Promise<T>;
  delete(resource: Resource, name: string, options?: DeleteOptions): Promise<void>;
  evict(pod: { name: string; namespace: string; uid?: string }, options?: EvictOptions): Promise<void>;
  /** Status code and text of a path such as `/readyz`, whatever the code is. */
  raw(path: string, options?: RequestOptions): Promise<{ status: number; body: string }>;
  /** Closes idle connections and aborts everything in flight; what is asked afterwards fails without being sent. */
  close(): void;
}
