/** Owns the rule that only a leader writes: a client that refuses, or cuts short, what could overlap with a successor. */
import type { KubeClient, RequestOptions } from '../client.ts';
import { TransportError } from '../status-error.ts';

/** Leadership at this moment. `fencing` grows with each change of leader; write it where a late write must be told. */
export interface Held {
  readonly fencing: number;
}

/** One write that was allowed. */
export interface WritePermission {
  /** Milliseconds within which the write must be over, however it ends. */
  readonly deadlineMs: number;
  /** Must be called once; `known` is false where the write may still arrive at the server. */
  end(known: boolean): void;
}

export interface SignalOrigin {
  /** Undefined as soon as another could hold the lease, without asking anybody. */
  held(): Held | undefined;
  /** Undefined where no write may begin. */
  permit(): WritePermission | undefined;
}

/** The write was refused here: it never left. Deliberately a TransportError, so that callers need no further case. */
export class NotLeaderError extends TransportError {
  constructor(what: string) {
    super(`${what} refused: the lease is not held`, { maybeApplied: false });
  }
}

/**
 * Reads pass; writes need the lease and end before it can be taken. A request that the network keeps back for longer
 * than that is beyond any client: give every write a precondition (resourceVersion or uid) that a successor invalidates.
 */
export function guardedClient(client: KubeClient, signalOrigin: SignalOrigin): KubeClient {
  const guarded = async <O extends RequestOptions, T>(
    what: string,
    options: O | undefined,
    write: (bounded: O & { deadlineMs: number }) => Promise<T>,
  ): Promise<T> => {
    const permit = signalOrigin.permit();
    if (!permit) throw new NotLeaderError(what);
    const deadlineMs = Math.min(options?.deadlineMs ?? Number.POSITIVE_INFINITY, permit.deadlineMs);
    let known = false;
    try {
      const result = await write({ ...(options as O), deadlineMs });
      known = true;
      return result;
    } catch (error) {
      known = !(error instanceof TransportError) || !error.maybeApplied;
      throw error;
    } finally {
      permit.end(known);
    }
  };
  return {
    get: async (resource, name, options) => await client.get(resource, name, options),
    list: async (resource, options) => await client.list(resource, options),
    listAll: async (resource, options) => await client.listAll(resource, options),
    watch: (resource, options) => client.watch(resource, options),
    raw: async (path, options) => await client.raw(path, options),
    close: () => client.close(),
    create: async (resource, object, options) =>
      await guarded(`create ${resource.plural}`, options, async (o) => await client.create(resource, object, o)),
    replace: async (resource, object, options) =>
      await guarded(`update ${resource.plural}`, options, async (o) => await client.replace(resource, object, o)),
    patch: async (resource, name, patch, options) =>
      await guarded(`patch ${resource.plural}`, options, async (o) => await client.patch(resource, name, patch, o)),
    delete: async (resource, name, options) =>
      await guarded(`delete ${resource.plural}`, options, async (o) => await client.delete(resource, name, o)),
    evict: async (pod, options) => await guarded('evict', options, async (o) => await client.evict(pod, o)),
  };
}
