/**
 * The part of an API server that stores EvictionRequests (KEP-4563), as kube-apiserver v1.38.0-beta.0 does: it accepts and refuses the
 * same objects. No controller runs; the test writes what a controller would write.
 */

import { setImmediate as nextMacrotask } from 'node:timers/promises';
import {
  type EvictionRequest,
  LIFECYCLE_PATH,
  type RequestedEviction,
} from '../../../src/drain/eviction-request-objects.ts';
import type { KubeClient, ListAllOptions, RequestOptions } from '../../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../../src/kube/resources.ts';
import { parseLabelSelector } from '../../../src/kube/selectors.ts';
import { onAbort, untilAborted } from '../../../src/util/waits.ts';
import { refuse } from './pod-api.ts';

const UID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const NAME = /^[a-z\d]([-a-z\d]*[a-z\d])?(\.[a-z\d]([-a-z\d]*[a-z\d])?)*$/;
const KEY =
  /^[a-z\d]([-a-z\d]*[a-z\d])?(\.[a-z\d]([-a-z\d]*[a-z\d])?)*\/[A-Za-z\d]([-\w.]*[A-Za-z\d])?$/;
const RESERVED = /(^|\.)(k8s\.io|kubernetes\.io)\//;

/** Returns the fields for which the API server refuses the object. */
export function faultsOf({ metadata, spec }: EvictionRequest): string[] {
  const { target, requester, intent } = spec;
  const faults: [string, boolean][] = [
    ['metadata.name', NAME.test(metadata.name) && metadata.name.length <= 253],
    ['spec.target', target.pod !== undefined],
    ['spec.target.pod.name', target.pod === undefined || NAME.test(target.pod.name)],
    ['spec.target.pod.uid', target.pod === undefined || UID.test(target.pod.uid)],
    ['spec.requester', KEY.test(requester) && !RESERVED.test(requester)],
    ['spec.intent', ['Eviction', 'Withdrawn'].includes(intent)],
  ];
  return faults.flatMap(([field, isValid]) => (isValid ? [] : field));
}

export class EvictionRequestApi {
  /** The stored EvictionRequests. The keys are `namespace/name`. */
  readonly requests = new Map<string, EvictionRequest>();
  evictions: RequestedEviction[] = [];
  /** False if the API server does not serve the group. */
  isServed = true;
  /** Called before a request is stored. If it throws an error, this error is the answer. */
  onCreate: (request: EvictionRequest) => void = () => undefined;
  /** Awaited before a create request arrives. */
  beforeCreate: (request: EvictionRequest) => Promise<void> = async () => {
    await Promise.resolve();
  };
  /** Awaited before a delete request arrives. */
  beforeDelete: () => Promise<void> = async () => {
    await Promise.resolve();
  };
  /**
   * True if the answer to a create request arrives only after the request was aborted, and reports success. The client
   * of a leader also waits for the end of such a write.
   */
  answersLate = false;
  /** Called before the EvictionRequests are listed. If it throws an error, this error is the answer. */
  onList: () => void = () => undefined;
  /** Called before the Evictions are listed. If it throws an error, this error is the answer. */
  onListEvictions: () => void = () => undefined;
  /** The answer to the request for the kinds of the group; undefined for the usual answer. */
  discovery: { status: number; body: string } | undefined;
  onDelete: (key: string) => void = () => undefined;
  /** Each call that is about this group, in order. */
  readonly calls: string[] = [];

  /** Returns a client that knows this group, and passes all other calls to `others`. */
  over(others: KubeClient): KubeClient {
    const own = {
      raw: async (path: string) => {
        await Promise.resolve();
        this.calls.push(`raw ${path}`);
        if (this.discovery !== undefined) return this.discovery;
        const resources = [{ kind: 'EvictionRequest', name: 'evictionrequests', namespaced: true }];
        return this.isServed && path === LIFECYCLE_PATH
          ? { status: 200, body: JSON.stringify({ resources }) }
          : { status: 404, body: '404 page not found' };
      },
      create: async (_resource: Resource, object: EvictionRequest, options: RequestOptions) => {
        await Promise.resolve();
        options.abort?.throwIfAborted();
        await this.beforeCreate(object);
        if (this.answersLate) {
          await new Promise<void>((resolve) => onAbort(options.abort, resolve));
          await nextMacrotask();
        }
        return this.#create(object, options);
      },
      delete: async (_resource: Resource, name: string, options: RequestOptions) => {
        await untilAborted(this.beforeDelete(), options.abort);
        options.abort?.throwIfAborted();
        const key = `${options.namespace}/${name}`;
        this.calls.push(`delete ${key}`);
        this.onDelete(key);
        if (!this.requests.delete(key)) throw refuse({ code: 404, reason: 'NotFound' });
      },
      listAll: async (resource: Resource, options: ListAllOptions<KubeObject> = {}) => {
        if (resource.group !== 'lifecycle.k8s.io') return await others.listAll(resource, options);
        await Promise.resolve();
        this.calls.push(`list ${resource.plural}`);
        return { metadata: {}, items: this.#listed(resource, options) };
      },
    };
    return new Proxy(others, {
      get: (target, name: keyof KubeClient) => (own as Partial<KubeClient>)[name] ?? target[name],
    });
  }

  /** Changes the EvictionRequest for the pod, as a controller does. */
  change(
    pod: string,
    status: EvictionRequest['status'],
    spec: Partial<EvictionRequest['spec']> = {},
  ): void {
    for (const [key, request] of this.requests)
      if (request.spec.target.pod?.name === pod)
        this.requests.set(key, {
          ...request,
          spec: { ...request.spec, ...spec },
          status: { ...status },
        });
  }

  /** Returns the names of the pods that have a request, in alphabetical order. */
  requested(): string[] {
    return [...this.requests.values()]
      .flatMap(({ spec }) => spec.target.pod?.name ?? [])
      .toSorted();
  }

  #create(object: EvictionRequest, { namespace }: RequestOptions): EvictionRequest {
    const key = `${namespace}/${object.metadata.name}`;
    this.calls.push(`create ${key}`);
    if (!this.isServed) throw refuse({ code: 404, reason: 'NotFound' });
    this.onCreate(object);
    const faults = faultsOf(object);
    if (faults.length > 0)
      throw refuse({
        code: 422,
        reason: 'Invalid',
        message: `Invalid value: ${faults.join(', ')}`,
      });
    if (this.requests.has(key)) throw refuse({ code: 409, reason: 'AlreadyExists' });
    this.requests.set(key, structuredClone(object));
    return object;
  }

  #listed({ plural }: Resource, { labelSelector = '' }: ListAllOptions<KubeObject>): KubeObject[] {
    if (plural === 'evictions') {
      this.onListEvictions();
      return this.evictions;
    }
    this.onList();
    return [...this.requests.values()].filter(parseLabelSelector(labelSelector));
  }
}
