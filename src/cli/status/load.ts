/** Owns reading what `refit status` needs: once by lists, or for good by informers. */
import type { Dialect, Watched, World } from '../../engine/dialect.ts';
import { OwnWrites, type View } from '../../engine/observe/own-writes.ts';
import { freshWorld, viewsOf } from '../../engine/observe/world.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf } from '../../kube/object-key.ts';
import { isForbidden, isNotFound } from '../../kube/status-error.ts';
import type { KubeObject } from '../../kube/types.ts';
import { createInformer } from '../../kube/watch/informer.ts';

/** The plans of one dialect, and the world they are about. */
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

/** Calls `onChange` after every change that can matter; follows until `signal` aborts. */
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
  // First: what stands beside plans is written before them, and must not be older than they are.
  const own = await view(plans);
  const views = await Promise.all(
    dialect.watched.map(async (followed) =>
      (await isThere(client, followed, abort)) ? await view(followed) : NOTHING,
    ),
  );
  const entries = dialect.watched.flatMap(({ resource }, index) => {
    const found = views[index];
    return found ? [[resource, found] as const] : [];
  });
  return { plans: () => own.list().filter(isPlan), world: freshWorld(viewsOf(entries), new OwnWrites()) };
}

async function isThere(client: KubeClient, { optional, resource }: Followed, abort: AbortSignal): Promise<boolean> {
  if (optional !== true) return true;
  try {
    await client.list(resource, { limit: 1, abort });
    return true;
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return false;
    throw error;
  }
}
