/** What the hosts of a scene and the scene itself ask of a real API server. */
import type { Caller } from '../../../src/kube/client.ts';
import type { Resource } from '../../../src/kube/resources.ts';
import { clientOver } from '../../../src/kube/transport/http-client.ts';

/**
 * Returns a caller that reads lists from the cache of the API server. For the newest state of the store, the API server
 * would wait up to 0.1 s in each second of the scene. The cache is up to date once `delivered` resolves.
 */
export function readingFromCache(caller: Caller, delivered: () => Promise<void>): Caller {
  return {
    ...caller,
    async json<T>(call: Parameters<Caller['json']>[0]) {
      if (call.verb !== 'list') return await caller.json<T>(call);
      await delivered();
      return await caller.json<T>({ ...call, query: { ...call.query, resourceVersion: '0' } });
    },
  };
}

/**
 * Watches all objects of these kinds until the caller is closed, so that every change of them is delivered to somebody.
 * Resolves when the watches are open.
 */
export async function watchAll(caller: Caller, kinds: readonly Resource[]): Promise<void> {
  const client = clientOver(caller);
  const follow = async (kind: Resource, resourceVersion: string | undefined): Promise<void> => {
    for await (const _ of client.watch(kind, { resourceVersion }));
  };
  for (const kind of kinds) {
    const { metadata } = await client.list(kind);
    // A watch ends with an error when the scene is over.
    follow(kind, metadata.resourceVersion).catch(() => undefined);
  }
}
