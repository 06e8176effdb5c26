/** Asks whether the kind is served, and whether this user may list it. */
import type { KubeClient, ListOptions } from './client.ts';
import type { Resource } from './resources.ts';

/** No object has this name. */
const NO_OBJECT = 'metadata.name=-';

/**
 * True, or rejects as a list would; reads nothing. A list that must be current makes those wait that follow it within 0.1 s: the
 * server asks for its store's progress no more often.
 */
export async function tryList(
  client: KubeClient,
  resource: Resource,
  { fieldSelector = NO_OBJECT, ...options }: Pick<ListOptions, 'namespace' | 'fieldSelector' | 'abort'> = {},
): Promise<true> {
  await client.list(resource, { ...options, fieldSelector, resourceVersion: '0' });
  return true;
}
