/** Counting what a plan costs the API server: bytes of status that are stored, and events that watches are sent. */
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

/** Every write of a plan or a status shard counts with what was sent or what is stored then, whichever is more. */
export class StatusBytes {
  readonly #tallies = new Map<string, { writes: number; bytes: number }>();

  note({ verb, resource, code, bytes }: RequestRecord): void {
    if (![PLAN, SHARD].includes(resource) || !WRITES.includes(verb) || code >= 400) return;
    const tally = this.#tallies.get(resource) ?? { writes: 0, bytes: 0 };
    this.#tallies.set(resource, tally);
    tally.writes++;
    // The answer to a write is the object as it is stored.
    tally.bytes += Math.max(bytes.request, bytes.answer);
  }

  of(kind: 'plan' | 'status shards'): StatusTally {
    return this.#tallies.get(kind === 'plan' ? PLAN : SHARD) ?? { writes: 0, bytes: 0 };
  }
}

/** The caller with each event of its watches counted; bookmarks, which come by the clock, are not. */
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
