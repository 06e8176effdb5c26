/** Reads the plans of a dialect and their world, by lists or by informers; finds the dialects that a cluster has. */
import type { Dialect, Watched, World } from '../../engine/dialect.ts';
import { OwnWrites, type View } from '../../engine/observe/own-writes.ts';
import { freshWorld, viewsOf } from '../../engine/observe/world.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf } from '../../kube/object-key.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import { createInformer } from '../../kube/watch/informer.ts';

export interface Loaded {
  plans(): readonly KubeObject[];
  readonly world: World;
}

export async function loadOnce(client: KubeClient, dialect: Dialect, abort: AbortSignal): Promise<Loaded> {
  return await load(client, dialect, abort, async ({ resource, namespace, fieldSelector }) => {
    const { items, metadata } = await client.listAll(resource, { abort, namespace, fieldSelector });
    const byKey = new Map(items.map((object) => [keyOf(object), object]));
    return {
      list: () => items,
      get: (name, namespace) => byKey.get(keyOf({ metadata: { name, ...(namespace ? { namespace } : {}) } })),
      resourceVersion: () => metadata.resourceVersion,
    };
  });
}

/** Calls `onChange` after every relevant change, until `abort`. */
export async function follow(
  client: KubeClient,
  dialect: Dialect,
  abort: AbortSignal,
  onChange: () => void,
): Promise<Loaded> {
  return await load(client, dialect, abort, async (followed) => {
    const { resource, namespace, fieldSelector } = followed;
    const informer = createInformer(client, resource, { namespace, fieldSelector });
    void informer.run(abort);
    await informer.whenSynced(abort);
    const updated = (after: KubeObject, before: KubeObject): void => {
      if (followed.isRelevant(before, after)) onChange();
    };
    informer.addHandler({ added: onChange, updated, deleted: onChange });
    return informer;
  });
}

interface Followed extends Watched {
  readonly fieldSelector?: string | undefined;
}

type Listed = Pick<Followed, 'resource' | 'namespace' | 'fieldSelector'>;

const NOTHING: View<KubeObject> = { list: () => [], get: () => undefined, resourceVersion: () => undefined };

async function load(
  client: KubeClient,
  dialect: Dialect,
  abort: AbortSignal,
  view: (followed: Followed) => Promise<View<KubeObject>>,
): Promise<Loaded> {
  const { plans: resource, scope: { namespace, fieldSelector } = {} } = dialect;
  const plans = { resource, namespace, fieldSelector, isRelevant: () => true };
  const isPlan = (object: KubeObject): boolean => dialect.scope?.isPlan?.(object) ?? true;
  // Plans first: the other objects are written before them, and must not be older than they are.
  const own = await view(plans);
  const views = await Promise.all(
    dialect.watched.map(async (followed) =>
      followed.optional !== true || (await isReadable(client, { resource: followed.resource }, abort))
        ? await view(followed)
        : NOTHING,
    ),
  );
  const entries = dialect.watched.flatMap(({ resource }, index) => {
    const found = views[index];
    return found ? [[resource, found] as const] : [];
  });
  return { plans: () => own.list().filter(isPlan), world: freshWorld(viewsOf(entries), new OwnWrites()) };
}

/** Also false without the right to list it. */
async function isReadable(client: KubeClient, { resource, ...rest }: Listed, abort: AbortSignal): Promise<boolean> {
  const { namespace, fieldSelector } = rest;
  try {
    await client.list(resource, { limit: 1, namespace, fieldSelector, abort });
    return true;
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return false;
    throw error;
  }
}

/**
 * The dialects whose kinds the cluster serves. Kinds of every API server prove nothing: without others, such a dialect
 * counts if it has plans. All dialects if none is left, so that the user learns what is missing.
 */
export async function installedOf(
  client: KubeClient,
  dialects: readonly Dialect[],
  abort: AbortSignal,
): Promise<readonly Dialect[]> {
  const isServed = await Promise.all(
    dialects.map(async ({ plans, scope }) => {
      if (plans.group === '') return await isReadable(client, { resource: plans, ...scope }, abort);
      return (await client.raw(`/apis/${plans.group}/${plans.version}`, { abort })).status !== 404;
    }),
  );
  const served = dialects.filter((_dialect, index) => isServed[index]);
  if (served.some(({ plans }) => plans.group !== '')) return served;
  const plans = await Promise.all(served.map(async (each) => (await loadOnce(client, each, abort)).plans()));
  const used = served.filter((_dialect, index) => plans[index]?.length !== 0);
  return used.length > 0 ? used : dialects;
}
