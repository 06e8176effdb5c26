/** Asks whether the kind is served, and whether this user may list it. */
import type { KubeClient, ListOptions } from './client.ts';
import type { Resource } from './resources.ts';

/**
 * True, or rejects as a list would; reads at most one object. A list that must be current makes those wait that follow it
 * within 0.1 s: the server asks for its store's progress no more often.
 */
export async function tryList(
  client: KubeClient,
  resource: Resource,
  {
    fieldSelector = '',
    ...options
  }: Pick<ListOptions, 'namespace' | 'fieldSelector' | 'abort'> = {},
): Promise<true> {
  // Rights may be for one name. No object is called `-`; another selector may match many.
  const ofName = fieldSelector.startsWith('metadata.name=') ? fieldSelector : 'metadata.name=-';
  await client.list(resource, { ...options, fieldSelector: ofName, resourceVersion: '0' });
  return true;
}
