/** Asks whether the kind is served, and whether this user may list it. */
import { defined } from '../util/json.ts';
import type { KubeClient, ListOptions } from './client.ts';
import type { Resource } from './resources.ts';
import { isForbidden, StatusError } from './status-error.ts';

/** No object is called so. */
const NO_NAME = '-';

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
  // Rights may be for one name. Another selector may match many.
  const isNamed = fieldSelector.startsWith('metadata.name=');
  const ofName = isNamed ? fieldSelector : `metadata.name=${NO_NAME}`;
  try {
    await client.list(resource, { ...options, fieldSelector: ofName, resourceVersion: '0' });
  } catch (error) {
    throw isForbidden(error) && !isNamed ? withoutName(error) : error;
  }
  return true;
}

/** As the API server refuses the list of all objects: it names the one of a selector, and nobody knows ours. */
function withoutName({ status, server, cause }: StatusError): StatusError {
  const { name: _name, ...details } = status.details ?? {};
  const message = status.message?.replace(` "${NO_NAME}" is forbidden`, ' is forbidden');
  const plain = { ...status, ...defined({ message }), details };
  return new StatusError(plain, { ...defined({ server }), cause });
}
