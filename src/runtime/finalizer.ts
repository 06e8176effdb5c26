/** Owns putting a finalizer on an object and taking it off, without disturbing those of others. */
import type { KubeClient, RequestOptions } from '../kube/client.ts';
import type { Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';

/** The object with the finalizer on it; rejects with a conflict where it has changed since `object` was read. */
export async function addFinalizer<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  object: T,
  finalizer: string,
  options?: RequestOptions,
): Promise<T> {
  const present = object.metadata.finalizers ?? [];
  if (present.includes(finalizer)) return object;
  return await write(client, resource, object, [...present, finalizer], options);
}

/** As `addFinalizer`; the server deletes an object that waits for its last finalizer. */
export async function removeFinalizer<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  object: T,
  finalizer: string,
  options?: RequestOptions,
): Promise<T> {
  const present = object.metadata.finalizers ?? [];
  if (!present.includes(finalizer)) return object;
  return await write(
    client,
    resource,
    object,
    present.filter((other) => other !== finalizer),
    options,
  );
}

/** The list is replaced as a whole, so the version must be the one that was read. */
async function write<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  { metadata: { name, namespace, uid, resourceVersion } }: T,
  finalizers: readonly string[],
  options: RequestOptions = {},
): Promise<T> {
  const patch = { metadata: { uid, resourceVersion, finalizers } };
  return await client.patch(resource, name, patch, { ...options, namespace, type: 'merge' });
}
