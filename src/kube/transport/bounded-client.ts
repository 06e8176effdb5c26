/**
 * Limits the concurrent requests of one client. A burst of thousands would cost sockets and memory
 * on both sides.
 */
import { semaphore } from '../../util/waits.ts';
import type { KubeClient, RequestOptions } from '../client.ts';

/**
 * A function that sends one request by calling `send`, perhaps later or with other options. `write` describes the write; undefined for a
 * read.
 */
type Around = <O extends RequestOptions | undefined, T>(
  write: string | undefined,
  options: O,
  send: (options: O) => Promise<T>,
) => Promise<T>;

/**
 * Returns a client with at most `most` concurrent requests. Other requests wait in order, and their deadlines start
 * when they are sent. Watches do not count, because they stay open.
 */
export function boundedClient(client: KubeClient, most: number): KubeClient {
  const limited = semaphore(most);
  return aroundRequests(
    client,
    async (_write, options, send) => await limited(async () => await send(options)),
  );
}

/** Returns a client that sends each request through `around`, except watches. */
export function aroundRequests(client: KubeClient, around: Around): KubeClient {
  return {
    get: async (resource, name, options) =>
      await around(undefined, options, async (own) => await client.get(resource, name, own)),
    list: async (resource, options) =>
      await around(undefined, options, async (own) => await client.list(resource, own)),
    listAll: async (resource, options) =>
      await around(undefined, options, async (own) => await client.listAll(resource, own)),
    watch: (resource, options) => client.watch(resource, options),
    create: async (resource, object, options) =>
      await around(
        `create ${resource.plural}`,
        options,
        async (own) => await client.create(resource, object, own),
      ),
    replace: async (resource, object, options) =>
      await around(
        `update ${resource.plural}`,
        options,
        async (own) => await client.replace(resource, object, own),
      ),
    patch: async (resource, name, patch, options) =>
      await around(
        `patch ${resource.plural}`,
        options,
        async (own) => await client.patch(resource, name, patch, own),
      ),
    delete: async (resource, name, options) =>
      await around(
        `delete ${resource.plural}`,
        options,
        async (own) => await client.delete(resource, name, own),
      ),
    evict: async (pod, options) =>
      await around('evict', options, async (own) => await client.evict(pod, own)),
    raw: async (path, options) =>
      await around(undefined, options, async (own) => await client.raw(path, own)),
    close: () => client.close(),
  };
}
