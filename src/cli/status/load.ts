/** Owns reading what `refit status` needs: once by lists, or for good by informers. */
import type { Dialect, World } from '../../engine/dialect.ts';
import type { Role } from '../../engine/model.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createInformer, type Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/types.ts';

/** The plans of one dialect, and the world they are about. */
export interface Loaded {
  plans(): readonly KubeObject[];
  readonly world: World;
}

const ROLES: readonly Role[] = ['controller', 'worker'];

export async function loadOnce(client: KubeClient, { plans, objects }: Dialect): Promise<Loaded> {
  const [planList, ...lists] = await Promise.all(
    [plans, ...ROLES.map((role) => objects[role])].map(async (resource) => await client.listAll(resource)),
  );
  const byRole = new Map(ROLES.map((role, index) => [role, lists[index]?.items ?? []]));
  const list = (role: Role): readonly KubeObject[] => byRole.get(role) ?? [];
  const get = (role: Role, name: string): KubeObject | undefined =>
    list(role).find(({ metadata }) => metadata.name === name);
  return { plans: () => planList?.items ?? [], world: { list, get } };
}

/** Calls `onChange` after every change; follows until `signal` aborts. */
export async function follow(
  client: KubeClient,
  { plans, objects }: Dialect,
  signal: AbortSignal,
  onChange: () => void,
): Promise<Loaded> {
  const start = async (resource: Dialect['plans']): Promise<Informer> => {
    const informer = createInformer(client, resource);
    void informer.run(signal);
    await informer.whenSynced(signal);
    informer.addHandler({ added: onChange, updated: onChange, deleted: onChange });
    return informer;
  };
  const [planInformer, controller, worker] = await Promise.all([
    start(plans),
    start(objects.controller),
    start(objects.worker),
  ]);
  const informers: Readonly<Record<Role, Informer>> = { controller, worker };
  const world: World = { list: (role) => informers[role].list(), get: (role, name) => informers[role].get(name) };
  return { plans: () => planInformer.list(), world };
}
