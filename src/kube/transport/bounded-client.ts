/** Limits the concurrent requests of one client: a burst of thousands costs sockets and memory on both sides. */
import { Semaphore } from '../../util/waits.ts';
import type { KubeClient } from '../client.ts';

/**
 * Requests beyond `most` wait in order, and their deadlines start with their turn. Watches do not count, because they last.
 */
export function boundedClient(client: KubeClient, most: number): KubeClient {
  const turns = new Semaphore(most);
  const inTurn = async <T>(request: () => Promise<T>): Promise<T> => await turns.within(request);
  return {
    get: async (resource, name, options) => await inTurn(async () => await client.get(resource, name, options)),
    list: async (resource, options) => await inTurn(async () => await client.list(resource, options)),
    listAll: async (resource, options) => await inTurn(async () => await client.listAll(resource, options)),
    watch: (resource, options) => client.watch(resource, options),
    create: async (resource, object, options) =>
      await inTurn(async () => await client.create(resource, object, options)),
    replace: async (resource, object, options) =>
      await inTurn(async () => await client.replace(resource, object, options)),
    patch: async (resource, name, patch, options) =>
      await inTurn(async () => await client.patch(resource, name, patch, options)),
    delete: async (resource, name, options) => await inTurn(async () => await client.delete(resource, name, options)),
    evict: async (pod, options) => await inTurn(async () => await client.evict(pod, options)),
    raw: async (path, options) => await inTurn(async () => await client.raw(path, options)),
    close: () => client.close(),
  };
}
