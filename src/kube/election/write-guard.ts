/** Lets only the leader write: this client refuses, or cuts short, every write that could overlap with a successor. */
import type { KubeClient, RequestOptions } from '../client.ts';
import { TransportError } from '../status-error.ts';

/** One period of leadership. `number` grows with each change of leader; write it where a late write must be recognised. */
export interface Term {
  readonly number: number;
}

/** One write that was allowed. */
export interface GuardedWrite {
  /** Milliseconds within which the write must be over, however it ends. */
  readonly deadlineMs: number;
  /** Call it once. `known` is false when the write may still reach the server. */
  end(known: boolean): void;
}

export interface WriteGuard {
  /** Undefined as soon as another could hold the lease; asks nobody. */
  term(): Term | undefined;
  /** Undefined when no write may begin. */
  beginWrite(): GuardedWrite | undefined;
}

/** The write was refused here and never sent. A TransportError, so that callers need no further case. */
export class NotLeaderError extends TransportError {
  constructor(what: string) {
    super(`${what} refused: this process does not hold the leader lease`, { maybeApplied: false });
  }
}

/**
 * Reads pass. Writes need the lease and end before another can take it. No client can stop a request that the network
 * delays for longer: give every write a precondition (resourceVersion or uid) that a successor invalidates.
 */
export function guardedClient(client: KubeClient, guard: WriteGuard): KubeClient {
  const guarded = async <O extends RequestOptions, T>(
    what: string,
    options: O | undefined,
    send: (bounded: O & { deadlineMs: number }) => Promise<T>,
  ): Promise<T> => {
    const write = guard.beginWrite();
    if (!write) throw new NotLeaderError(what);
    const deadlineMs = Math.min(options?.deadlineMs ?? Number.POSITIVE_INFINITY, write.deadlineMs);
    let known = false;
    try {
      const result = await send({ ...(options as O), deadlineMs });
      known = true;
      return result;
    } catch (error) {
      known = !(error instanceof TransportError) || !error.maybeApplied;
      throw error;
    } finally {
      write.end(known);
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
