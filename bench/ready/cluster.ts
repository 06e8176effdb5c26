/** Makes and removes the objects of a measurement on a real API server. */
import type { KubeClient } from '../../src/kube/client.ts';
import {
  apiVersionOf,
  clusterScoped,
  type KubeObject,
  namespaced,
  namespaces,
  type Resource,
} from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { systemClock } from '../../src/util/clock.ts';
import { semaphore } from '../../src/util/waits.ts';
import { CUSTOM_KINDS, NAMESPACE } from '../../test/support/ready/planted-objects.ts';

const AT_ONCE = 32;

function resourceOf({ apiVersion = '', kind = '', metadata }: KubeObject): Resource {
  const custom = CUSTOM_KINDS.find(
    ([group, version, name]) => apiVersion === `${group}/${version}` && kind === name,
  );
  const make = metadata.namespace === undefined ? clusterScoped : namespaced;
  return make(apiVersion, kind, custom?.[3]);
}

/**
 * Creates the objects, runs `work`, and removes the objects. The owner of pods is the namespace, which the garbage
 * collector finds.
 */
export async function withObjects<T>(
  client: KubeClient,
  objects: readonly object[],
  work: () => Promise<T>,
): Promise<T> {
  const { uid = '' } = (await client.get(namespaces, NAMESPACE)).metadata;
  const microTime = (time: number): string => new Date(time).toISOString().replace('Z', '000Z');
  const text = JSON.stringify(objects)
    .replaceAll('"uid":"OWNER"', `"uid":"${uid}"`)
    .replaceAll('IN AN HOUR', microTime(systemClock.now() + 3_600_000))
    .replaceAll('RIGHT NOW', microTime(systemClock.now()));
  const all = JSON.parse(text) as KubeObject[];
  try {
    await eachAtOnce(all, async (object) => await create(client, object));
    return await work();
  } finally {
    await eachAtOnce(all.toReversed(), async (object) => await remove(client, object));
  }
}

async function create(client: KubeClient, object: KubeObject): Promise<void> {
  const resource = resourceOf(object);
  const { namespace } = object.metadata;
  const created = await client.create<KubeObject & { status?: object }>(resource, object, {
    namespace,
  });
  if (resource.kind !== 'Pod') return;
  // The API server ignores the status of a new pod.
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await client.replace(resource, Object.assign(created, { status }), {
    namespace,
    subresource: 'status',
  });
}

async function remove(client: KubeClient, object: KubeObject): Promise<void> {
  const resource = resourceOf(object);
  const { name, namespace } = object.metadata;
  const isPod = apiVersionOf(resource) === 'v1' && resource.kind === 'Pod';
  await ifFound(
    client.delete(resource, name, { namespace, ...(isPod && { gracePeriodSeconds: 0 }) }),
  );
}

/** Does the work for all, some of them at the same time, in their order. */
async function eachAtOnce<T>(
  all: readonly T[],
  work: (each: T) => Promise<unknown>,
): Promise<void> {
  const withSlot = semaphore(AT_ONCE);
  await Promise.all(all.map(async (each) => await withSlot(async () => await work(each))));
}
