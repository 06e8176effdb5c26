/** Limits the concurrent requests of one client: a burst of thousands costs sockets and memory on both sides. */
import { semaphore } from '../../util/waits.ts';
import type { KubeClient, RequestOptions } from '../client.ts';

/** Sends one request, perhaps later or with other options. `write` names a write; it is undefined for a read. */
type Around = <O extends RequestOptions | undefined, T>(
  write: string | undefined,
  options: O,
  send: (options: O) => Promise<T>,
) => Promise<T>;

/** Requests beyond `most` wait in order, and their deadlines start with their turn. Watches do not count, because they last. */
export function boundedClient(client: KubeClient, most: number): KubeClient {
  const inTurn = semaphore(most);
  return aroundRequests(
    client,
    async (_write, options, send) => await inTurn(async () => await send(options)),
  );
}

/** A client that sends each request through `around`. Watches pass. */
export function aroundRequests(client: KubeClient, around: Around): KubeClient {
  return {
    get: async (resource, name, options) =>
      await around(undefined, options, async (o) => await client.get(resource, name, o)),
    list: async (resource, options) =>
      await around(undefined, options, async (o) => await client.list(resource, o)),
    listAll: async (resource, options) =>
      await around(undefined, options, async (o) => await client.listAll(resource, o)),
    watch: (resource, options) => client.watch(resource, options),
    create: async (resource, object, options) =>
      await around(
        `create ${resource.plural}`,
        options,
        async (o) => await client.create(resource, object, o),
      ),
    replace: async (resource, object, options) =>
      await around(
        `update ${resource.plural}`,
        options,
        async (o) => await client.replace(resource, object, o),
      ),
    patch: async (resource, name, patch, options) =>
      await around(
        `patch ${resource.plural}`,
        options,
        async (o) => await client.patch(resource, name, patch, o),
      ),
    delete: async (resource, name, options) =>
      await around(
        `delete ${resource.plural}`,
        options,
        async (o) => await client.delete(resource, name, o),
      ),
    evict: async (pod, options) =>
      await around('evict', options, async (o) => await client.evict(pod, o)),
    raw: async (path, options) =>
      await around(undefined, options, async (o) => await client.raw(path, o)),
    close: () => client.close(),
  };
}
