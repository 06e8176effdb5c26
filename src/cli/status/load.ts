/** Owns reading what `refit status` needs: once by lists, or for good by informers. */
import type { Dialect, World } from '../../engine/dialect.ts';
import type { Role } from '../../engine/model.ts';
import { matters } from '../../engine/relevance.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createInformer, type Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/types.ts';

/** The plans of one dialect, and the world they are about. */
export interface Loaded {
  plans(): readonly KubeObject[];
  readonly world: World;
}

export async function loadOnce(client: KubeClient, { plans, objects }: Dialect, signal: AbortSignal): Promise<Loaded> {
  const [planList, controllers, workers] = await Promise.all(
    [plans, objects.controller, objects.worker].map(
      async (resource) => (await client.listAll(resource, { signal })).items,
    ),
  );
  const lists: Readonly<Record<Role, readonly KubeObject[]>> = { controller: controllers ?? [], worker: workers ?? [] };
  const byName = (list: readonly KubeObject[]): Map<string, KubeObject> =>
    new Map(list.map((object) => [object.metadata.name, object]));
  const indexes = { controller: byName(lists.controller), worker: byName(lists.worker) };
  const world: World = { list: (role) => lists[role], get: (role, name) => indexes[role].get(name) };
  return { plans: () => planList ?? [], world };
}

/** Calls `onChange` after every change that can matter; follows until `signal` aborts. */
export async function follow(
  client: KubeClient,
  { plans, objects }: Dialect,
  signal: AbortSignal,
  onChange: () => void,
): Promise<Loaded> {
  const start = async (
    resource: Dialect['plans'],
    isNews: (before: KubeObject, after: KubeObject) => boolean,
  ): Promise<Informer> => {
    const informer = createInformer(client, resource);
    void informer.run(signal);
    await informer.whenSynced(signal);
    const updated = (after: KubeObject, before: KubeObject): void => {
      if (isNews(before, after)) onChange();
    };
    informer.addHandler({ added: onChange, updated, deleted: onChange });
    return informer;
  };
  const [planInformer, controller, worker] = await Promise.all([
    start(plans, () => true),
    start(objects.controller, matters),
    start(objects.worker, matters),
  ]);
  const informers: Readonly<Record<Role, Informer>> = { controller, worker };
  const world: World = { list: (role) => informers[role].list(), get: (role, name) => informers[role].get(name) };
  return { plans: () => planInformer.list(), world };
}
