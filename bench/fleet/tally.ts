/** Counts what a plan costs the API server: the bytes of stored status, and the events that watches receive. */
import type { RequestRecord } from '../../sandbox/api-server/api-server.ts';
import type { Call, Caller, WatchEvent } from '../../src/kube/client.ts';
import type { KubeObject } from '../../src/kube/resources.ts';

export interface StatusTally {
  readonly writes: number;
  readonly bytes: number;
}

const PLAN = 'plans.autopilot.k0sproject.io';
const SHARD = 'statusshards.upgrade.refit.dev';
const WRITES = ['create', 'update', 'patch'];

/**
 * Counts the bytes of each write of a plan or a status shard. It uses the size of the request or the size of the stored
 * object, whichever is larger.
 */
export class StatusBytes {
  readonly #tallies = new Map<string, { writes: number; bytes: number }>();

  note({ verb, resource, code, bytes }: RequestRecord): void {
    if (![PLAN, SHARD].includes(resource) || !WRITES.includes(verb) || code >= 400) return;
    const tally = this.#tallies.get(resource) ?? { writes: 0, bytes: 0 };
    this.#tallies.set(resource, tally);
    tally.writes++;
    // The answer to a write is the object in its stored form.
    tally.bytes += Math.max(bytes.request, bytes.answer);
  }

  of(kind: 'plan' | 'status shards'): StatusTally {
    return this.#tallies.get(kind === 'plan' ? PLAN : SHARD) ?? { writes: 0, bytes: 0 };
  }
}

/**
 * Returns the caller with a counter for the events of its watches. Bookmarks do not count, because the server sends
 * them at regular times.
 */
export function countingEvents(caller: Caller, count: (name: string) => void): Caller {
  return {
    ...caller,
    async *stream<T>(call: Call, idleMs: number) {
      for await (const value of caller.stream<T>(call, idleMs)) {
        const { type, object } = value as WatchEvent<KubeObject>;
        if (type !== 'BOOKMARK' && type !== 'ERROR') count(object.metadata.name);
        yield value;
      }
    },
  };
}
